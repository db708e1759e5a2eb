package supervisor

import (
	"context"
	"fmt"
)

// policyHealth is where the policy engine of each node answers once policies are in effect, in the node's namespace.
const policyHealth = "http://127.0.0.1:10258/healthz"

// bridged says whether packets between pods of one node, which a bridge joins, pass the rules of iptables: without that an engine
// would not see them.
const bridged = "/proc/sys/net/bridge/bridge-nf-call-"

// enterPolicy starts a policy engine in each node and returns when policies are in effect.
func (s *supervisor) enterPolicy(ctx context.Context, p Policy) error {
	if p != KubeNetworkPolicies {
		return nil
	}
	if err := s.each(func(m *member) error {
		if _, err := m.node.Run("sh", "-c", "echo 1 >"+bridged+"iptables && echo 1 >"+bridged+"ip6tables"); err != nil {
			return fmt.Errorf("have the packets of %s's bridge pass iptables: %w", m.name, err)
		}
		return s.start(m, servicePolicy)
	}); err != nil {
		return err
	}
	return s.await(ctx, "the policy engine of %s", func(ctx context.Context, m *member) error {
		_, err := get(ctx, m.space, policyHealth)
		return err
	})
}

// switchPolicy brings another policy engine into effect. One that is asked to end takes its rules with it.
func (s *supervisor) switchPolicy(ctx context.Context, p Policy) error {
	if s.config.Policy == KubeNetworkPolicies {
		if err := s.each(func(m *member) error { return m.node.StopService(servicePolicy, false) }); err != nil {
			return err
		}
	}
	// Until another is in effect there is none.
	s.config.Policy = NoPolicy
	if err := s.enterPolicy(ctx, p); err != nil {
		return err
	}
	s.config.Policy = p
	return nil
}
