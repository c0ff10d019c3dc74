package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guideHosts are the hosts of the production guide, each a network namespace on one switch. They
// know one another by name, and have their own /var/lib.
type guideHosts struct {
	*hosts
	prefix string
	names  []string
	tokens map[string]string // by the host that may join with it
	roots  map[string]int    // by host, a process in its own root directory; none: it has the tests'
}

func newGuideHosts(t *testing.T, names ...string) *guideHosts {
	t.Helper()
	g := &guideHosts{
		hosts: newHosts(t), prefix: "lh" + strings.ToLower(rand.Text()[:6]), names: names, tokens: map[string]string{},
		roots: map[string]int{},
	}
	t.Cleanup(func() {
		for _, n := range append([]string{"net"}, names...) {
			_ = exec.Command("ip", "netns", "delete", g.prefix+n).Run() // its links go with it
		}
	})
	script := "set -e\nip netns add $1net\nip -n $1net link add name switch type bridge\nip -n $1net link set switch up\n"
	hosts := "127.0.0.1 localhost\n"
	if err := os.Mkdir(filepath.Join(g.dir, "vault"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		script += fmt.Sprintf("ip netns add $1%[1]s\nip -n $1%[1]s link add eth0 type veth peer name p%[1]s netns $1net\n"+
			"ip -n $1net link set p%[1]s master switch up\nip -n $1%[1]s address add 198.51.100.%[2]d/24 dev eth0\n"+
			"ip -n $1%[1]s link set lo up\nip -n $1%[1]s link set eth0 up\n", n, i+1)
		hosts += fmt.Sprintf("198.51.100.%d %s\n", i+1, n)
		if err := os.MkdirAll(filepath.Join(g.dir, n), 0o700); err != nil {
			t.Fatal(err)
		}
		g.all[n] = &serverHost{name: n, dir: filepath.Join(g.dir, n, "server")}
	}
	if err := os.WriteFile(filepath.Join(g.dir, "hosts"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "-c", script, "sh", g.prefix).CombinedOutput(); err != nil {
		t.Fatalf("make the networks (root is needed): %v: %s", err, out)
	}
	return g
}

// on is a command on a host.
func (g *guideHosts) on(host string, command ...string) *exec.Cmd {
	if pid, own := g.roots[host]; own {
		root := fmt.Sprintf("/proc/%d/", pid)
		cmd := g.command("nsenter", append([]string{
			"--net=/run/netns/" + g.prefix + host, "--mount=" + root + "ns/mnt", "--root=" + root + "root", "--wd=/",
		}, command...)...)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "NO_COLOR=1", "SHELL=/bin/bash"}
		return cmd
	}
	const enter = `mount --bind "$1" /etc/hosts && mount -t tmpfs none /var/lib && mkdir /var/lib/leasehold && ` +
		`mount --bind "$2" /var/lib/leasehold && mount -t tmpfs none /mnt && mkdir /mnt/vault && mount --bind "$3" /mnt/vault && ` +
		`shift 3 && exec "$@"`
	cmd := g.command("nsenter", append([]string{
		"--net=/run/netns/" + g.prefix + host, "unshare", "--mount", "sh", "-c", enter, "sh",
		filepath.Join(g.dir, "hosts"), filepath.Join(g.dir, host), filepath.Join(g.dir, "vault"),
	}, command...)...)
	cmd.Env = []string{
		"PATH=" + filepath.Dir(bin("leasehold")) + ":" + os.Getenv("PATH"), "HOME=" + g.dir, "NO_COLOR=1", "SHELL=/bin/bash",
	}
	return cmd
}

var (
	runsOn    = regexp.MustCompile(`^leasehold server --name (\w+) --(init|join)`)
	replaces  = regexp.MustCompile(`^leasehold server replace (\w+)`)
	printsFor = regexp.MustCompile(`leasehold server --name (\w+) --join \S+ --token (\S+)`)
)

// follow runs the commands of a page, in its order, and compares what they print with what it says.
// Before a host is replaced it is lost.
func (g *guideHosts) follow(steps []step) {
	t := g.t
	t.Helper()
	learn := func(printed string) {
		for _, m := range printsFor.FindAllStringSubmatch(printed, -1) {
			g.tokens[m[1]] = m[2]
		}
	}
	for _, s := range steps {
		command := s.command
		if m := runsOn.FindStringSubmatch(command); m != nil {
			h := g.all[m[1]]
			words := strings.Fields(strings.Replace(command, "…", g.tokens[h.name], 1))
			h.run = g.start("server-"+h.name, g.on(s.host, append(words, g.flags...)...))
			g.await(h.name+" printing what the page says", func() bool {
				if h.run.HasEnded() {
					t.Fatalf("$ %s: exit %d: %s", command, h.run.ExitCode(), h.run.stderr.String())
				}
				return len(missing(s.prints, h.run.stdout.String())) == 0
			})
			learn(h.run.stdout.String())
			t.Logf("%s$ %s", s.host, command)
			continue
		}
		if m := replaces.FindStringSubmatch(command); m != nil { // it is lost before
			g.lose(g.all[m[1]])
		}
		var printed string
		try := func() []string {
			out, err := g.on(s.host, "script", "-qec", "stty cols 110; "+command, "/dev/null").Output()
			printed = string(out)
			if err != nil {
				return []string{printed + describe(err)}
			}
			return missing(s.prints, printed)
		}
		if reads.MatchString(command) || strings.HasPrefix(command, "leasehold server list") {
			g.await("what the page says of "+command, func() bool { return len(try()) == 0 })
		} else if lacks := try(); len(lacks) > 0 {
			t.Fatalf("%s$ %s\n%s\nlacks:\n%s", s.host, command, printed, strings.Join(lacks, "\n"))
		}
		learn(printed)
		t.Logf("%s$ %s", s.host, command)
	}
}

// The commands of the production guide do what it says, in its order, on hosts with nothing but the
// programs.
//
// proves DAY-1
func TestProductionGuide(t *testing.T) {
	t.Parallel()
	g := newGuideHosts(t, "a", "b", "c", "d")
	g.follow(stepsOf(t, filepath.Join("..", "..", "docs", "production.md")))
	// The host that was removed has ended by itself.
	gone := g.all["d"]
	g.waitEnd(gone.run)
	gone.run = nil
	left := slices.DeleteFunc(slices.Clone(g.names), func(n string) bool { return g.all[n].run == nil })
	if !slices.Equal(left, []string{"a", "b", "c"}) {
		t.Errorf("%v run", left)
	}
}
