package survey

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// questionsAtOnce is how many rights are asked for at the same time.
const questionsAtOnce = 8

// askRights asks the API server for each right that a run takes.
func (l *looker) askRights(ctx context.Context) {
	needs := Needs(l.cluster.Namespace)
	// Objects of extensions are asked for only where the extension is.
	needs = slices.DeleteFunc(needs, func(n Need) bool {
		return (n.Group == calicoGroup || n.Group == multusGroup) && !l.evidence.groups[n.Group]
	})
	rights := make([]Right, len(needs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questionsAtOnce)
	for i, need := range needs {
		group.Go(func() error {
			rights[i] = l.askRight(ctx, need)
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	l.survey.Rights = rights
}

// askRight asks for one. One that is about several objects is there where it is for each.
func (l *looker) askRight(ctx context.Context, need Need) Right {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	right := Right{Need: need, Allowed: true}
	resource, sub, _ := strings.Cut(need.Resource, "/")
	names := need.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: need.Namespace, Verb: need.Verb, Group: need.Group, Resource: resource, Subresource: sub, Name: name,
		}}}
		answer, err := l.cluster.API.SelfSubjectAccessReviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return Right{Need: need, Unknown: err.Error()}
		}
		right.Allowed = right.Allowed && answer.Status.Allowed
	}
	return right
}
