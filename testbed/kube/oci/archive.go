package oci

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Reference is a name under which an image is kept; local ones need no registry.
type Reference struct{ tag name.Tag }

// ParseReference reads a name as docker does: without a registry it is Docker Hub's, without a tag "latest". Insecure takes
// registries without TLS too; those on loopback are taken so in any case.
func ParseReference(text string, insecure bool) (Reference, error) {
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(text, options...)
	if err != nil {
		return Reference{}, fmt.Errorf("%q is no name of an image: %w; write REGISTRY/REPOSITORY:TAG", text, err)
	}
	return Reference{tag}, nil
}

// String is the whole name.
func (r Reference) String() string { return r.tag.Name() }

// manifest is the entry of an archive that docker load reads.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Artifact is a v1.Image or a v1.ImageIndex.
type Artifact interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// WriteArchive writes an image, or an index with all its images, as one archive that is an OCI layout (which ctr images import reads,
// and podman, skopeo and kind) and also has docker's manifest (for docker load).
func WriteArchive(w io.Writer, made Artifact, ref Reference) error {
	a := &archive{w: tar.NewWriter(w)}
	if index, ok := made.(v1.ImageIndex); ok {
		return a.writeIndex(index, ref)
	}
	return a.writeImage(made.(v1.Image), ref)
}

func (a *archive) writeImage(image v1.Image, ref Reference) error {
	docker := a.image(image, ref)
	descriptor, err := ref.named(image)
	config, configErr := image.ConfigFile()
	if err := errors.Join(err, configErr); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	descriptor.Platform = &v1.Platform{OS: config.OS, Architecture: config.Architecture}
	return a.finish([]manifest{docker}, descriptor)
}

// image writes all blobs of an image, and returns docker's entry of it.
func (a *archive) image(image v1.Image, ref Reference) manifest {
	docker := manifest{Config: a.blob(image.ConfigName, image.RawConfigFile), RepoTags: []string{ref.String()}}
	layers, err := image.Layers()
	if err != nil {
		a.failed = errors.Join(a.failed, err)
	}
	for _, l := range layers {
		docker.Layers = append(docker.Layers, a.layer(l))
	}
	a.blob(image.Digest, image.RawManifest)
	return docker
}

// finish writes what leads to the blobs: docker's manifest, and an index that names one image, or an index of images.
func (a *archive) finish(docker []manifest, named v1.Descriptor) error {
	a.document("manifest.json", docker)
	a.document("index.json", v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{named}})
	a.document("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	if a.failed != nil {
		return fmt.Errorf("write the image: %w", a.failed)
	}
	if err := a.w.Close(); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	return nil
}

// named is an image, or an index of images, as an index names it. Its name is given twice: containerd takes the first, others the second.
func (r Reference) named(of partial.Describable) (v1.Descriptor, error) {
	d, err := partial.Descriptor(of)
	if err != nil {
		return v1.Descriptor{}, err
	}
	d.ArtifactType = ""
	d.Annotations = map[string]string{"io.containerd.image.name": r.String(), "org.opencontainers.image.ref.name": r.tag.TagStr()}
	return *d, nil
}

// archive is a tar file that is being written. After the first error nothing more is.
type archive struct {
	w      *tar.Writer
	failed error
}

// file begins a file. All are of the same time, so that the same image is the same archive.
func (a *archive) file(path string, size int64) {
	if a.failed == nil {
		a.failed = a.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	}
}

func (a *archive) bytes(path string, data []byte) {
	a.file(path, int64(len(data)))
	if a.failed == nil {
		_, a.failed = a.w.Write(data)
	}
}

func (a *archive) document(path string, content any) {
	data, err := json.Marshal(content)
	if err != nil && a.failed == nil {
		a.failed = err
	}
	a.bytes(path, data)
}

// blob writes data under its digest, and returns its path.
func (a *archive) blob(digest func() (v1.Hash, error), data func() ([]byte, error)) string {
	hash, err := digest()
	content, dataErr := data()
	if err := errors.Join(err, dataErr); err != nil {
		a.failed = errors.Join(a.failed, err)
		return ""
	}
	path := place(hash)
	a.bytes(path, content)
	return path
}

// layer writes a compressed layer under its digest, and returns its path.
func (a *archive) layer(l v1.Layer) string {
	hash, err := l.Digest()
	size, sizeErr := l.Size()
	content, openErr := l.Compressed()
	if err := errors.Join(err, sizeErr, openErr); err != nil {
		a.failed = errors.Join(a.failed, err)
		return ""
	}
	path := place(hash)
	a.file(path, size)
	if a.failed == nil {
		_, a.failed = io.Copy(a.w, content)
	}
	a.failed = errors.Join(a.failed, content.Close())
	return path
}

// place is where a layout keeps what has this digest.
func place(hash v1.Hash) string { return "blobs/" + hash.Algorithm + "/" + hash.Hex }

// Push writes an image, or an index with all its images, to its registry, with the credentials that docker keeps for it (docker login),
// and returns the name by its digest, under which it never changes.
func Push(ctx context.Context, made Artifact, ref Reference) (string, error) {
	err := remote.Push(ref.tag, made, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("netdelta"))
	if err != nil {
		return "", fmt.Errorf("push the image to %s: %w%s", ref, err, fix(err))
	}
	digest, err := made.Digest()
	if err != nil {
		return "", fmt.Errorf("name the image by its digest: %w", err)
	}
	return ref.tag.Context().Digest(digest.String()).Name(), nil
}

// fix is what to do about a push that failed, as the end of its error; "" where nothing is known.
func fix(err error) string {
	var refused *transport.Error
	switch {
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return "; log in by docker login with an account that may write there"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "; the registry has no TLS: give --insecure-registry"
	}
	return ""
}
