package openstack

import (
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/userdata"
)

const (
	// maxUserData is Nova's bound on user data in base64.
	maxUserData = 65535
	// maxBootstrap is the largest document whose user data stay below that, with the authority's
	// certificate once more and the script.
	maxBootstrap = 16000
)

// userData hands the document to cloud-init, as a file that only root can read, with a script that
// fetches the agent if the image has none, and starts it.
func userData(req provider.CreateRequest) ([]byte, error) {
	text, err := userdata.CloudConfig(req.Bootstrap, req.Agent)
	return []byte(text), err
}
