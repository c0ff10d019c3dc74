package ec2

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// EC2 allows 16 KiB of user data. What a template adds has its share, so that a document of
// maxBootstrap bytes always fits: it grows by a third as base64.
const (
	maxSize      = 16 << 10
	maxUserData  = 4 << 10
	maxBootstrap = 8 << 10
)

const (
	bootstrapPath = "/etc/leasehold/bootstrap.json"
	agentUnit     = "leasehold-agent.service"
)

// boundary divides the parts of user data. The text of a template cannot contain it by accident.
const boundary = "==leasehold-7d1c5f0e5b0a4c7b=="

// userData is what cloud-init carries out at the machine's first boot: what the template adds, then
// ours, which writes the bootstrap document and starts the agent.
func userData(b provider.Bootstrap, more string) (string, error) {
	document, err := b.Encode()
	if err != nil {
		return "", err
	}
	ours, err := cloudConfig(document)
	if err != nil {
		return "", err
	}
	text := ours
	if more != "" {
		if strings.Contains(more, boundary) {
			return "", fmt.Errorf("%w: settings.user_data: contains the line that divides it from Leasehold's part", provider.ErrInvalid)
		}
		if text, err = parts(more, ours); err != nil {
			return "", err
		}
	}
	if len(text) > maxSize {
		return "", fmt.Errorf("%w: user data is %d bytes and EC2 allows %d: shorten settings.user_data or the workload's command and variables",
			provider.ErrInvalid, len(text), maxSize)
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

// cloudConfig is JSON, which is YAML as well.
func cloudConfig(document []byte) (string, error) {
	text, err := json.Marshal(map[string]any{
		"write_files": []map[string]string{{
			"path": bootstrapPath, "permissions": "0600", "owner": "root:root", "encoding": "b64",
			"content": base64.StdEncoding.EncodeToString(document),
		}},
		"runcmd":    [][]string{{"systemctl", "enable", "--now", agentUnit}},
		"merge_how": "list(append)+dict(recurse_array)+str()", // a template's cloud-config keeps its own files and commands
	})
	if err != nil {
		return "", fmt.Errorf("write user data: %w", err)
	}
	return "#cloud-config\n" + string(text) + "\n", nil
}

// parts is user data of several parts, which cloud-init carries out in order.
func parts(texts ...string) (string, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		return "", fmt.Errorf("write user data: %w", err)
	}
	for _, text := range texts {
		kind := "text/x-shellscript"
		if strings.HasPrefix(text, "#cloud-config") {
			kind = "text/cloud-config"
		}
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {kind + `; charset="utf-8"`}})
		if err == nil {
			_, err = part.Write([]byte(text))
		}
		if err != nil {
			return "", fmt.Errorf("write user data: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("write user data: %w", err)
	}
	return fmt.Sprintf("Content-Type: multipart/mixed; boundary=%q\r\nMIME-Version: 1.0\r\n\r\n%s", boundary, body.String()), nil
}

// decodeConsole reads the base64 of GetConsoleOutput.
func decodeConsole(text string) ([]byte, error) {
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("EC2's console output is not base64: %w", err)
	}
	return out, nil
}
