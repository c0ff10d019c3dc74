//go:build nightly

package e2e

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// rpmStory installs both packages into a root directory of their own, upgrades, downgrades and
// removes them, with their scripts, and says at each step what is there. $1 is a Debian, $2 a
// directory for what is written, $3 and $4 are the packages of two releases.
const rpmStory = `set -e
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
# dpkg's records say what is installed, and rpm's do not.
rpm() { command rpm --root "$root" --nodeps "$@" 2>/dev/null; }
root=$2/root
command rpm --root "$root" --initdb 2>/dev/null
say() {
	echo "$1: $(command rpm --root "$root" --query --all --queryformat '%{NAME}=%{VERSION}\n' | sort | tr '\n' ' ')"
	chroot "$root" sh -c 'leasehold --version; leasehold-agent --version; id -un leasehold
		stat -c "%U %G %a %n" /etc/leasehold /var/lib/leasehold /etc/leasehold/server.env \
			/etc/leasehold-agent /var/lib/leasehold-agent
		tail -n 1 /etc/leasehold/server.env
		cd /usr/lib/systemd/system && ls leasehold-server.service leasehold-agent.service' 2>&1 || true
}
rpm --install "$3"/leasehold*.rpm
say installed
echo '# ours' >>"$root/etc/leasehold/server.env"
mkdir "$root/var/lib/leasehold/server"
rpm --upgrade "$4"/leasehold*.rpm
say upgraded
rpm --upgrade --oldpackage "$3"/leasehold*.rpm
say downgraded
rpm --erase leasehold leasehold-agent
say removed
ls -d "$root/var/lib/leasehold/server"`

// The RPM packages with RPM itself and their scripts: installed, upgraded, downgraded and removed.
// What operators wrote and what a server keeps stays. There is no systemd in it, and the userland
// is Debian's.
//
// proves DAY-4
func TestPackagesByRPM(t *testing.T) {
	if _, err := exec.LookPath("rpm"); err != nil {
		if out, err := exec.Command("apt-get", "install", "-y", "-qq", "--no-install-recommends", "rpm").
			CombinedOutput(); err != nil {
			t.Fatalf("install rpm: %v: %s", err, out)
		}
	}
	image, err := exec.Command("../../scripts/debian-image.sh").Output()
	if err != nil {
		t.Fatalf("make the image: %v", err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "-xzf", strings.TrimSpace(string(image)), "rootfs").
		CombinedOutput(); err != nil {
		t.Fatalf("unpack the image: %v: %s", err, out)
	}
	old, now := buildPackages(t, "v0.8.0", runtime.GOARCH), buildPackages(t, "v0.9.0", runtime.GOARCH)
	out, err := exec.Command("unshare", "--mount", "sh", "-c", rpmStory, "sh", filepath.Join(dir, "rootfs"), dir, old,
		now).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	there := func(version string) string {
		return "leasehold-agent=" + version + " leasehold=" + version + " \nleasehold v" + version + "\nv" + version +
			"\nleasehold\nroot leasehold 750 /etc/leasehold\nleasehold leasehold 750 /var/lib/leasehold\n" +
			"root root 640 /etc/leasehold/server.env\nroot root 700 /etc/leasehold-agent\n" +
			"root root 700 /var/lib/leasehold-agent\n"
	}
	text := string(out)
	for _, want := range []string{
		"installed: " + there("0.8.0"), "upgraded: " + there("0.9.0") + "# ours\n",
		"downgraded: " + there("0.8.0") + "# ours\n", "removed: \n", "/var/lib/leasehold/server\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks:\n%s", want)
		}
	}
	_, after, _ := strings.Cut(text, "removed: ")
	if strings.Contains(after, "\nleasehold-server.service") || strings.Contains(after, "leasehold v0") {
		t.Errorf("after the removal: %s", after)
	}
}
