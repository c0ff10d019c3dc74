package etcdstore

import (
	"net"
	"strings"
	"testing"
)

// A member that answers says what it is; one that does not is in the result with the reason, and
// keeps no other from being asked.
//
// proves DAY-3
func TestMembersAreAsked(t *testing.T) {
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nothing is answered
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := refusing.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := AskMembers(t.Context(), Config{
		Endpoints: []string{server.Endpoint(), refusing.Addr().String(), silent.Addr().String(), server.Endpoint()},
	})
	if err != nil || len(found.All) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	up := found.All[0]
	if up.Down != "" || up.Name == "" || !strings.HasPrefix(up.Version, "3.7.") || up.Size == 0 || up.Quota == 0 ||
		up.Used == 0 || up.Used > up.Size || up.NoLeader || up.Remote || !up.Plain {
		t.Errorf("the member: %+v", up)
	}
	if down := found.All[1]; !strings.Contains(down.Down, "refused") {
		t.Errorf("where nothing listens: %+v", down)
	}
	if down := found.All[2]; !strings.Contains(down.Down, "no answer in 2s") {
		t.Errorf("where nothing answers: %+v", down)
	}
	alone, err := AskMembers(t.Context(), Config{Endpoints: []string{server.Endpoint()}})
	if err != nil || !alone.NoAuthentication {
		t.Errorf("authentication is off, and that is not seen: %+v, %v", alone, err)
	}
}
