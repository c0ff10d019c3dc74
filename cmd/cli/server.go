package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/server"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// Servers are the commands about hosts that run leasehold server.
type Servers struct {
	Run     server.Command `cmd:"" default:"withargs" help:"Run this host: an etcd member and a replica. The word run may be left out."`
	List    ServerList     `cmd:"" help:"List the hosts of the cluster, and which of them answer."`
	Add     ServerAdd      `cmd:"" help:"Let another host join: print the command to run on it."`
	Remove  ServerRemove   `cmd:"" help:"Remove a host from the cluster for good."`
	Replace ServerReplace  `cmd:"" help:"Replace a host that lost its data: remove it and print its join command."`
	Token   ServerToken    `cmd:"" help:"Print a token with which one host may join within an hour."`
}

// ServerPlace is the flag that says where a host keeps its data.
type ServerPlace struct {
	DataDir string `help:"Data directory of leasehold server on this host (default: ${default})." env:"LEASEHOLD_SERVER_DIR" default:"${server_dir}" type:"path" placeholder:"DIR"`
}

// cluster runs an operation on the cluster of this host, within the time limit of a few requests.
func (p ServerPlace) cluster(ctx context.Context, inv *Invocation,
	do func(context.Context, *server.Admin) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, 4*inv.requestLimit())
	defer cancel()
	admin, err := server.Open(ctx, server.Place{Dir: p.DataDir})
	if err != nil {
		return err
	}
	defer admin.Close()
	return do(ctx, admin)
}

// ServerList is the command server list.
type ServerList struct{ ServerPlace }

// serverHost is a host, for JSON.
type serverHost struct {
	Name    string   `json:"name"`
	State   string   `json:"state"` // leader, member, learner, down
	Version string   `json:"etcd_version,omitempty"`
	Bytes   int64    `json:"etcd_bytes,omitempty"`
	Quota   int64    `json:"etcd_quota,omitempty"`
	Clients []string `json:"clients"`
	Peers   []string `json:"peers"`
	Error   string   `json:"error,omitempty"`
	Alarms  []string `json:"alarms,omitempty"`
}

// Run lists them, with or without a quorum.
func (c *ServerList) Run(ctx context.Context, inv *Invocation) error {
	return c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		list, err := a.Members(ctx)
		if err != nil {
			return err
		}
		return inv.showHosts(list)
	})
}

func (inv *Invocation) showHosts(list []etcdstore.Member) error {
	cluster := server.ClusterOf(list)
	hosts := []serverHost{}
	for _, m := range cluster {
		for _, raw := range list {
			if raw.ID == m.ID {
				hosts = append(hosts, serverHost{
					Name: m.Label(), State: hostState(raw), Version: raw.Version, Bytes: raw.Bytes, Quota: raw.Quota,
					Clients: raw.Clients, Peers: raw.Peers, Error: raw.Error, Alarms: raw.Alarms,
				})
			}
		}
	}
	if done, err := inv.records(hosts); done {
		return err
	}
	t := output.Table{
		Columns: []output.Column{{Title: "HOST"}, {Title: "STATE"}, {Title: "ETCD"}, {Title: "DATA"}, {Title: "ADDRESS"}},
	}
	for _, h := range hosts {
		address, data, version := "-", "-", "-"
		if len(h.Clients) > 0 {
			address = h.Clients[0]
		} else if len(h.Peers) > 0 {
			address = h.Peers[0]
		}
		if h.Bytes > 0 {
			data = output.Bytes(uint64(h.Bytes))
		}
		if h.Version != "" {
			version = h.Version
		}
		t.Add(h.Name, h.State, version, data, address)
	}
	if err := t.Write(inv.screen(), inv.wide()); err != nil {
		return err
	}
	if why := cluster.NoQuorum(); why != "" {
		inv.warn("%s", why)
		program.WriteNext(inv.aside(), "start leasehold server on them; docs/production.md says what to do if they are lost "+
			"for good")
		return nil
	}
	if advice := cluster.Advice(); advice != "" {
		inv.note("%s", advice)
	}
	return nil
}

// hostState returns a member's state in a word.
func hostState(m etcdstore.Member) string {
	switch {
	case m.Learner && !m.Answers:
		return "joining, down"
	case m.Learner:
		return "joining"
	case !m.Answers:
		return "down"
	case m.Leads:
		return "leader"
	}
	return "member"
}

// ServerAdd is the command server add.
type ServerAdd struct {
	ServerPlace
	Name string `arg:"" help:"Name of the new host."`
}

// Run prints the command for the new host.
func (c *ServerAdd) Run(ctx context.Context, inv *Invocation) error {
	return c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		if err := a.MayAdd(ctx, c.Name); err != nil {
			return err
		}
		return inv.invite(ctx, a, c.Name)
	})
}

// invite prints the command with which a host joins.
func (inv *Invocation) invite(ctx context.Context, a *server.Admin, name string) error {
	token, err := a.Token(ctx, inv.env.User)
	if err != nil {
		return err
	}
	inv.note("run on %s within an hour, once:", name)
	fmt.Fprintln(inv.env.Stdout, a.JoinCommand(name, token))
	return nil
}

// ServerToken is the command server token.
type ServerToken struct{ ServerPlace }

// Run prints a token.
func (c *ServerToken) Run(ctx context.Context, inv *Invocation) error {
	return c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		token, err := a.Token(ctx, inv.env.User)
		if err != nil {
			return err
		}
		fmt.Fprintln(inv.env.Stdout, token)
		return nil
	})
}

// ServerRemove is the command server remove.
type ServerRemove struct {
	ServerPlace
	Confirm []string `help:"Confirm by naming the host." placeholder:"NAME"`
	Name    string   `arg:"" help:"Name of the host."`
}

// Run removes a host: its member and its replica end.
func (c *ServerRemove) Run(ctx context.Context, inv *Invocation) error {
	if err := c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		return a.MayRemove(ctx, c.Name)
	}); err != nil {
		return err
	}
	if err := inv.confirm(ctx, c.Confirm, c.Name, "remove host "+c.Name); err != nil {
		return err
	}
	return c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		if err := a.Remove(ctx, c.Name); err != nil {
			return err
		}
		fmt.Fprintf(inv.env.Stdout, "%s removed\n", c.Name)
		return nil
	})
}

// ServerReplace is the command server replace.
type ServerReplace struct {
	ServerPlace
	Confirm []string `help:"Confirm by naming the host." placeholder:"NAME"`
	Name    string   `arg:"" help:"Name of the host."`
}

// Run removes a host that does not answer, and lets it join again.
func (c *ServerReplace) Run(ctx context.Context, inv *Invocation) error {
	if err := c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		return a.MayReplace(ctx, c.Name)
	}); err != nil {
		return err
	}
	if err := inv.confirm(ctx, c.Confirm, c.Name, "remove host "+c.Name+", whose data is lost"); err != nil {
		return err
	}
	return c.cluster(ctx, inv, func(ctx context.Context, a *server.Admin) error {
		if err := a.Replace(ctx, c.Name); err != nil {
			return err
		}
		inv.note("%s removed; its data directory must be empty when it joins", c.Name)
		return inv.invite(ctx, a, c.Name)
	})
}
