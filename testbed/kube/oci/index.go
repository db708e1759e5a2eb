package oci

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ErrSameProcessor is matched by the error of Index for two programs that are for one kind of processor.
var ErrSameProcessor = errors.New("two programs for one kind of processor")

// Index makes one name for several processors: an image of each program, of which a node takes the one that it can run. The order in
// which the programs are given does not matter.
func Index(programs ...Program) (v1.ImageIndex, error) {
	sorted := slices.SortedFunc(slices.Values(programs), func(a, b Program) int { return strings.Compare(a.Arch, b.Arch) })
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, p := range sorted {
		if i > 0 && p.Arch == sorted[i-1].Arch {
			return nil, fmt.Errorf("put %s and %s under one name: %w, %s; give one of each", sorted[i-1].Path, p.Path, ErrSameProcessor, p.Arch)
		}
		image, err := Image(p)
		if err != nil {
			return nil, err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: p.Arch},
		}})
	}
	return all, nil
}

// writeIndex writes an index with all its images. Readers of docker's manifest, which has no room for several processors, find the first
// image there.
func (a *archive) writeIndex(index v1.ImageIndex, ref Reference) error {
	listed, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	var docker []manifest
	for _, d := range listed.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return fmt.Errorf("write the images: %w", err)
		}
		docker = append(docker, a.image(image, ref))
	}
	a.blob(index.Digest, index.RawManifest)
	descriptor, err := ref.named(index)
	if err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	return a.finish(docker[:min(1, len(docker))], descriptor)
}
