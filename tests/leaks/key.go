package leaks

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// OfKey returns what reveals a private key, by what it is called: a piece of the number that
// it is, and a piece of the line of its PEM that has most of that.
func OfKey(name string, text []byte) (map[string]string, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("it is no private key as PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	var number []byte
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		if number, err = key.Bytes(); err != nil {
			return nil, fmt.Errorf("read private key: %w", err)
		}
	case *rsa.PrivateKey:
		number = key.D.Bytes()
	default:
		return nil, fmt.Errorf("a key of type %T is not looked for", key)
	}
	const most = 16
	out := map[string]string{name: string(number[len(number)-most:])}
	// A line has 48 bytes, and only whole ones that begin inside of the number are of the key alone.
	begins := strings.Index(string(block.Bytes), string(number))
	line := begins/48 + 1
	if lines := strings.Split(string(pem.EncodeToMemory(block)), "\n"); begins >= 0 && len(lines) > line+1 {
		inside := min(len(number)-(line*48-begins), 48) * 4 / 3
		if text := lines[line+1]; inside >= least {
			out["the text of "+name] = text[:min(inside, len(text))]
		}
	}
	return out, nil
}
