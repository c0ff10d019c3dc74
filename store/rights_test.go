package store

import "testing"

// proves SEC-4 for the names: etcd's roles of one shard are taken for those of no other
func TestRoleNames(t *testing.T) {
	for _, shard := range []string{"default", "a", "a-viewer", "shop-operator-b"} {
		for _, r := range Roles() {
			name := KeysOf(shard).RoleName(r)
			if s, got, ok := SplitRole(name); !ok || s != shard || got != r {
				t.Errorf("%s is taken for %s of %s, %v", name, got, s, ok)
			}
		}
	}
	for _, name := range []string{
		"root", "leasehold-", "leasehold-viewer", "leasehold-a-", "leasehold-a-Viewer",
		"other-a-viewer", "leasehold--viewer",
	} {
		if shard, r, ok := SplitRole(name); ok {
			t.Errorf("%s is taken for %s of %s", name, r, shard)
		}
	}
}

// proves SEC-4: nobody but coordinators may write what is, and nobody writes outside a shard
func TestPermissionsOfRoles(t *testing.T) {
	k := KeysOf("a")
	writes := func(r Role, key string) bool {
		for _, p := range k.Permissions(r) {
			if p.Write && (p.Key == key || p.Prefix && len(key) >= len(p.Key) && key[:len(p.Key)] == p.Key) {
				return true
			}
		}
		return false
	}
	wanted := []string{k.Group("web"), k.Static("web"), k.Request("x"), k.Shard(), k.Secret("x")}
	is := []string{
		k.Served(), k.Replica("x"), k.Status("web"), k.Slot("web", 0), k.Instance("x"), k.Alive("x"), k.Report("x"),
		k.Token("x"), k.Joined("x"), k.Stray("x"), k.Host("x"), k.Turn("web"), k.Of(KindEvents) + "x", k.Leader(1),
	}
	outside := []string{Root, Root + "b/groups/web", Root + "ab/groups/web", "/other", Root + "a"}
	for _, key := range wanted {
		if writes(RoleViewer, key) || !writes(RoleOperator, key) || !writes(RoleCoordinator, key) {
			t.Errorf("%s: viewers %v, operators %v, coordinators %v", key, writes(RoleViewer, key),
				writes(RoleOperator, key), writes(RoleCoordinator, key))
		}
	}
	for _, key := range is {
		if writes(RoleViewer, key) || writes(RoleOperator, key) || !writes(RoleCoordinator, key) {
			t.Errorf("%s: viewers %v, operators %v, coordinators %v", key, writes(RoleViewer, key),
				writes(RoleOperator, key), writes(RoleCoordinator, key))
		}
	}
	for _, key := range outside {
		for _, r := range Roles() {
			if writes(r, key) {
				t.Errorf("%s may write %s", r, key)
			}
		}
	}
}
