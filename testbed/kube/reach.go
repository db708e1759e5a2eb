package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrUnreachable is matched by the errors of an API server that does not answer, or does not let the user in.
var ErrUnreachable = errors.New("the cluster can't be asked")

// meetWithin is how long an API server may take for its first answer.
const meetWithin = 15 * time.Second

// Meet asks the API server for its version: v1.34.4, "" where this user may not know it. The error matches ErrUnreachable where it does not answer. It is not asked
// again: one that was there and is away for a while is waited for, one that never answered is the wrong one.
func (c *Cluster) Meet(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	about, err := c.API.Version(ctx)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", c.Unreachable(err)
	}
	return about.GitVersion, nil
}

// Unreachable is the error of a cluster that can't be asked: why, and what to do about it.
func (c *Cluster) Unreachable(err error) error {
	fix := "see whether it runs, and whether its address can be reached from here"
	var refused *net.OpError
	switch {
	case apierrors.IsUnauthorized(err):
		fix = "the kubeconfig's credentials are not, or no longer, taken: get new ones"
	case strings.Contains(err.Error(), "x509:"):
		fix = "the kubeconfig's authority is not the cluster's: get the kubeconfig anew"
	case errors.As(err, &refused) && refused.Op == "dial":
		fix = "nothing answers there: start the cluster, or choose another with --context"
	}
	return fmt.Errorf("%w: ask the API server of %s at %s: %w; %s", ErrUnreachable, c.Name, c.REST.Host, err, fix)
}
