// Package provider is a Kubernetes cluster as a kind of testbed: its pods, what a survey says of it, and changes of it.
package provider

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/change"
	"netdelta/testbed/kube/survey"
)

// Cluster is the provider of a cluster.
type Cluster struct {
	*kube.Driver
	cluster *kube.Cluster
	config  kube.Config
	survey  func(context.Context) (survey.Survey, error)
	log     io.Writer
}

// New is a provider of testbeds on the cluster that the configuration names, of which a survey tells. Changes are logged. The error
// says what is wrong with the options.
func New(c *kube.Cluster, config kube.Config, o kube.Options, look func(context.Context) (survey.Survey, error), log io.Writer) (*Cluster, error) {
	d, err := kube.NewDriver(c, o)
	if err != nil {
		return nil, err
	}
	return &Cluster{d, c, config, look, log}, nil
}

// Capabilities implements testbed.Provider.
func (p *Cluster) Capabilities() testbed.Capabilities {
	all := p.Driver.Capabilities()
	all.Describe = p.describe
	all.Changer = func(run, folder string) (testbed.Changer, error) {
		return change.New(p.cluster, change.Options{Run: run, Config: p.config, Folder: folder, Log: p.log, Standing: p.Standing, Foreign: p.foreign})
	}
	return all
}

// foreign says what of other products stands on the nodes.
func (p *Cluster) foreign(ctx context.Context, standing map[string][]string) []string {
	found, err := p.survey(ctx)
	if err != nil {
		return nil // the record says what is not known of the cluster
	}
	return found.Foreign(standing)
}

// describe adds what can be told of the cluster without looking into a pod.
func (p *Cluster) describe(ctx context.Context, e result.Environment) (result.Environment, []string, error) {
	found, err := p.survey(ctx)
	if err != nil {
		return e, nil, err
	}
	about, notes := surveyed(found)
	e.Cluster = &about
	return e, notes, nil
}

// surveyed is what a run records of a cluster, and what it could not find out.
func surveyed(s survey.Survey) (result.Cluster, []string) {
	about := result.Cluster{Name: s.Cluster, Version: s.Version, Network: pluginWords(s.Network), Proxy: s.Services.Mode}
	if own, known := s.Network.Product(); known {
		about.Product = own.Name
	}
	for _, n := range s.Nodes {
		if n.Shut != "" || !n.Ready {
			continue // no pod of the run is there
		}
		about.Nodes = append(about.Nodes, result.ClusterNode{
			Name: n.Name, Zone: n.Zone, Kernel: n.Kernel, OS: n.OS, Kubelet: n.Kubelet, Runtime: n.Runtime,
		})
	}
	var notes []string
	for _, g := range s.Gaps {
		why := g.Reason
		if g.Right != "" {
			why = "it takes the right to " + g.Right
		}
		notes = append(notes, fmt.Sprintf("not known here: %s: %s", g.What, why))
	}
	slices.Sort(notes)
	return about, slices.Compact(notes)
}

// pluginWords says in a few words how a cluster's pods are joined: "flannel (vxlan, pods' MTU 1450)".
func pluginWords(n survey.Network) string {
	if n.Plugin == "" {
		return ""
	}
	plugin := n.Plugin
	if n.Doubt != "" {
		plugin = "probably " + plugin
	}
	var more []string
	if n.Mode != "" {
		more = append(more, n.Mode)
	}
	if n.Encapsulation != "" && n.Encapsulation != n.Mode && n.Encapsulation != "none" {
		when := ""
		if n.OnlyAcross {
			when = " between subnets only"
		}
		more = append(more, "encapsulated in "+n.Encapsulation+when)
	}
	if n.Encryption != "" && n.Encryption != "none" {
		more = append(more, "encrypted by "+n.Encryption)
	}
	if n.MTU != 0 {
		more = append(more, fmt.Sprintf("pods' MTU %d", n.MTU))
	}
	if len(more) == 0 {
		return plugin
	}
	return plugin + " (" + strings.Join(more, ", ") + ")"
}
