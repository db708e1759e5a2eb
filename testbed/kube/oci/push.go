package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

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
