package openstack

import (
	"encoding/base64"
	"encoding/json"

	"github.com/leasehold/leasehold/provider"
)

const (
	// maxUserData is Nova's bound on user data in base64.
	maxUserData = 65535
	// maxBootstrap is the largest document whose user data stay below that. They hold it in base64,
	// and are sent in base64.
	maxBootstrap = 36000
)

// userData hands the document to cloud-init, as a file that only root can read, and starts the
// agent. cloud-init reads JSON as the YAML that it is.
func userData(b provider.Bootstrap) ([]byte, error) {
	document, err := b.Encode()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"write_files": []map[string]string{{
			"path": "/etc/leasehold/bootstrap.json", "permissions": "0600", "owner": "root:root",
			"encoding": "b64", "content": base64.StdEncoding.EncodeToString(document),
		}},
		"runcmd": [][]string{{"systemctl", "enable", "--now", "leasehold-agent"}},
	})
	if err != nil {
		return nil, err
	}
	return append([]byte("#cloud-config\n"), config...), nil
}
