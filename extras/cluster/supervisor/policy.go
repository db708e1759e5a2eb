package supervisor

import (
	"context"
	"fmt"

	"netdelta/extras/cluster/node"
)

// policyHealth is where the policy engine of each node answers once policies are in effect, in the node's namespace.
const policyHealth = "http://127.0.0.1:10258/healthz"

func policyEngine(name string) node.Service {
	return node.Service{Name: servicePolicy, Args: []string{
		"kube-network-policies", "--kubeconfig=" + kubeconfigOf(servicePolicy), "--hostname-override=" + name,
	}}
}

// bridged says whether packets between pods of one node, which a bridge joins, pass the rules of iptables: without that an engine
// would not see them.
const bridged = "/proc/sys/net/bridge/bridge-nf-call-"

// enterPolicy starts a policy engine in each node and returns when policies are in effect.
func (s *supervisor) enterPolicy(ctx context.Context, p Policy) error {
	if p != KubeNetworkPolicies {
		return nil
	}
	for _, m := range s.members {
		if _, err := m.node.Run("sh", "-c", "echo 1 >"+bridged+"iptables && echo 1 >"+bridged+"ip6tables"); err != nil {
			return fmt.Errorf("have the packets of %s's bridge pass iptables: %w", m.name, err)
		}
		if err := m.node.StartService(policyEngine(m.name)); err != nil {
			return err
		}
	}
	for _, m := range s.members {
		if err := until(ctx, "the policy engine of "+m.name, func(ctx context.Context) error {
			_, err := get(ctx, m.space, policyHealth)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// switchPolicy brings another policy engine into effect. One that is asked to end takes its rules with it.
func (s *supervisor) switchPolicy(ctx context.Context, p Policy) error {
	if s.config.Policy == KubeNetworkPolicies {
		for _, m := range s.members {
			if err := m.node.StopService(servicePolicy, false); err != nil {
				return err
			}
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
