package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/testbed"
	"netdelta/workload"
)

// lackingElsewhere is what pods on other machines don't have of what a workload needs, "" where all is there.
func lackingElsewhere(ctx context.Context, name string, d workload.Demand, able testbed.Capabilities) (string, error) {
	if len(d.Programs) == 0 {
		return "", nil
	}
	names := gather.Each(d.Programs, func(p workload.Program) string { return p.Name })
	lacking, err := able.Lacking(ctx, names)
	if err != nil || len(lacking) == 0 {
		return "", err
	}
	if able.Guest != nil {
		return fmt.Sprintf("workload %s is unsupported: the guest has no %s; run it with --testbed %s", name, strings.Join(lacking, ", no "), here), nil
	}
	var packages []string
	for _, p := range d.Programs {
		if slices.Contains(lacking, p.Name) && !slices.Contains(packages, p.Package) {
			packages = append(packages, p.Package)
		}
	}
	if able.OwnsNodes {
		return fmt.Sprintf("workload %s is unsupported: a machine has no %s; install %s on each, by apt install %s",
			name, strings.Join(lacking, ", no "), map[bool]string{true: "it", false: "them"}[len(lacking) == 1], strings.Join(packages, " ")), nil
	}
	return fmt.Sprintf("workload %s is unsupported: the pods' image has no %s (%s); give one that has with --base-image, such as deploy/programs/Dockerfile makes",
		name, strings.Join(lacking, ", no "), strings.Join(packages, ", ")), nil
}

// lackingPrograms is what is not installed of what a workload needs, "" where all is.
func lackingPrograms(name string, d workload.Demand) (string, error) {
	programs, packages, err := workload.Missing(d.Programs)
	if err != nil {
		return "", fmt.Errorf("looking for the programs of workload %s: %w", name, err)
	}
	if len(programs) == 0 {
		return "", nil
	}
	return fmt.Sprintf("workload %s is unsupported: needs %s; %s", name, strings.Join(programs, " and "), workload.Installation(packages)), nil
}
