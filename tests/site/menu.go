package main

// section is a part of the menu.
type section struct {
	Name  string
	Pages []string
}

// menu has the pages in the order in which a newcomer meets them.
var menu = []section{
	{"Begin", []string{"README.md", "docs/tutorial.md", "docs/comparison.md"}},
	{"Groups", []string{
		"docs/simulate.md", "docs/changing.md", "docs/autoscaling.md", "docs/spot.md", "docs/files.md", "docs/authorities.md",
		"docs/discovery.md", "docs/gitops.md", "docs/webhooks.md", "docs/tracing.md", "docs/report.md", "docs/replay.md",
		"docs/drill.md", "docs/page.md",
	}},
	{"Production", []string{
		"docs/production.md", "docs/packages.md", "docs/operations.md", "docs/backup.md", "docs/damage.md",
		"docs/security.md",
	}},
	{"Machines and load balancers", []string{
		"docs/providers/from-nothing.md", "docs/providers/lxd.md", "docs/providers/libvirt.md", "docs/providers/ec2.md",
		"docs/providers/openstack.md", "docs/providers/exec.md", "docs/providers/promises.md", "docs/balancers/design.md",
		"docs/balancers/haproxy.md", "docs/balancers/target-groups.md", "docs/balancers/exec.md",
	}},
	{"Reference", []string{
		"docs/group-file.md", "docs/cli.md", "docs/api.md", "docs/settings.md", "docs/metrics.md", "docs/rules.md",
		"CHANGELOG.md",
	}},
	{"How it works", []string{
		"docs/architecture.md", "docs/decisions.md", "docs/dependencies.md", "docs/detection.md",
		"docs/false-positives.md", "docs/reliability.md", "docs/performance.md", "CONTRIBUTING.md", "docs/releasing.md",
	}},
}
