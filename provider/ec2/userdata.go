package ec2

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/userdata"
)

// EC2 allows 16 KiB of user data, which are compressed. What a template adds has its share, so that
// a document of maxBootstrap bytes always fits.
const (
	maxSize      = 16 << 10
	maxUserData  = 4 << 10
	maxBootstrap = 8 << 10
)

// boundary divides the parts of user data. The text of a template cannot contain it by accident.
const boundary = "==leasehold-7d1c5f0e5b0a4c7b=="

// userData is what cloud-init carries out at the machine's first boot: what the template adds, then
// ours, which writes the bootstrap document, fetches the agent if the image has none, and starts
// it.
func userData(req provider.CreateRequest, more string) (string, error) {
	text, err := userdata.CloudConfig(req.Bootstrap, req.Agent)
	if err != nil {
		return "", err
	}
	if more != "" {
		if strings.Contains(more, boundary) {
			return "", fmt.Errorf("%w: settings.user_data: contains the line that divides it from Leasehold's part",
				provider.ErrInvalid)
		}
		if text, err = parts(more, text); err != nil {
			return "", err
		}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed) // cloud-init unpacks it
	_, err = w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		return "", fmt.Errorf("write user data: %w", err)
	}
	if packed.Len() > maxSize {
		return "", fmt.Errorf("%w: user data is %d bytes and EC2 allows %d: shorten settings.user_data "+
			"or the workload's command and variables",
			provider.ErrInvalid, packed.Len(), maxSize)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
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
	return fmt.Sprintf("Content-Type: multipart/mixed; boundary=%q\r\nMIME-Version: 1.0\r\n\r\n%s", boundary,
		body.String()), nil
}

// decodeConsole reads the base64 of GetConsoleOutput.
func decodeConsole(text string) ([]byte, error) {
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("EC2's console output is not base64: %w", err)
	}
	return out, nil
}
