package services

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// makeCredentials creates what is missing or about to expire.
func makeCredentials(dir, etcdHost string) (Credentials, error) {
	c := Credentials{Dir: filepath.Join(dir, "pki")}
	err := c.MakeAuthorities()
	if err == nil {
		err = c.Issue(localHosts(etcdHost))
	}
	if err != nil {
		return c, credentialsProblem(err)
	}
	return c, nil
}

// devEtcdctl returns the file in the data directory of a running dev with the variables for
// etcdctl.
func devEtcdctl(dataDir string) string { return filepath.Join(dataDir, "etcdctl.env") }

// writeSettings writes how to reach dev's etcd: settings for leasehold, as an operator, and
// variables for etcdctl, as root, which reads every shard.
func (c Credentials) writeSettings(dir, endpoint, shard string) error {
	cert, key := c.Of(string(store.RoleOperator))
	rootCert, rootKey := c.Of(store.RoleRoot)
	ca := c.CA(pki.Operators)
	settings := fmt.Sprintf("# leasehold dev writes this when it starts, and removes it when it stops\n"+
		"endpoints: [%q]\ncacert: %q\ncert: %q\nkey: %q\nshard: %q\n", endpoint, ca, cert, key, shard)
	variables := fmt.Sprintf("export ETCDCTL_ENDPOINTS=%s ETCDCTL_CACERT=%s ETCDCTL_CERT=%s ETCDCTL_KEY=%s\n",
		reason.ShellWord("https://"+endpoint), reason.ShellWord(ca), reason.ShellWord(rootCert), reason.ShellWord(rootKey))
	return errors.Join(
		durable.Replace(DevSettings(dir), []byte(settings), 0o600),
		durable.Replace(devEtcdctl(dir), []byte(variables), 0o600),
	)
}

// removeSettings removes what writeSettings wrote, when the etcd has stopped.
func (c Credentials) removeSettings(dir string) error {
	return errors.Join(os.Remove(DevSettings(dir)), os.Remove(devEtcdctl(dir)))
}

// connection returns how a coordinator reaches the etcd.
func (c Credentials) connection(endpoint string) *program.Connection {
	cert, key := c.Of(string(store.RoleCoordinator))
	return &program.Connection{Endpoints: []string{endpoint}, CACert: c.CA(pki.Operators), Cert: cert, Key: key}
}
