package ec2test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const bootstrapPath = "/etc/leasehold/bootstrap.json"

// BootstrapOf is the bootstrap document that cloud-init would write for user data: the one in the
// last cloud-config, which has to be JSON.
func BootstrapOf(userData []byte) ([]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(userData))
	if err == nil {
		userData, err = io.ReadAll(unpacked)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack user data: %w", err)
	}
	text := string(userData)
	at := strings.LastIndex(text, "#cloud-config\n{")
	if at < 0 {
		return nil, errors.New("there is no cloud-config of JSON")
	}
	var config struct {
		Files []struct {
			Path, Permissions, Encoding, Content string
		} `json:"write_files"`
		Run [][]string `json:"runcmd"`
	}
	if err := json.NewDecoder(strings.NewReader(text[at+len("#cloud-config\n"):])).Decode(&config); err != nil {
		return nil, fmt.Errorf("read cloud-config: %w", err)
	}
	for _, f := range config.Files {
		if f.Path == bootstrapPath && f.Permissions == "0600" && f.Encoding == "" && len(config.Run) == 1 {
			return []byte(f.Content), nil
		}
	}
	return nil, errors.New("the cloud-config does not write " + bootstrapPath + " and start the agent")
}
