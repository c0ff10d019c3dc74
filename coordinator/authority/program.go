package authority

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider/program"
)

// API is the version of the protocol between coordinator and program.
const API = 1

// ProgramConfig configures an authority behind a program.
type ProgramConfig struct {
	program.Config
	Limits
}

const (
	describeEvery  = 15 * time.Second // so that all replicas see a change within a minute
	describeWithin = 10 * time.Second
	maxBundle      = 128 << 10
)

type byProgram struct {
	allowed Limits
	program *program.Program

	mu     sync.Mutex
	answer described // the last answer
	err    error     // why there is no answer yet
}

// described is a program's description of its authority.
type described struct {
	API    int    `json:"api"`
	Bundle string `json:"bundle"` // PEM
	// Issuer is any text that changes when everything must be issued again; empty: a change of the
	// bundle has that effect.
	Issuer string `json:"issuer"`
}

// signed is a program's answer to sign.
type signed struct {
	Chain string `json:"chain"` // PEM, the instance's certificate first
}

type signParams struct {
	Request  string   `json:"request"` // PEM
	Names    []string `json:"names"`
	KeyType  string   `json:"key_type"`
	Lifetime float64  `json:"lifetime"` // seconds
}

// NewProgram checks the configuration. It does not run the program: an external authority that is
// down must not prevent a coordinator from starting.
func NewProgram(c ProgramConfig) (Authority, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	run, err := program.New(c.Config, API)
	if err != nil {
		return nil, err
	}
	return &byProgram{
		allowed: c.Limits, program: run, err: errors.New("its program has not said yet what to trust"),
	}, nil
}

func (a *byProgram) limits() *Limits { return &a.allowed }

// UseSecrets sets where the values of the shard's secrets are read.
func (a *byProgram) UseSecrets(lookup func(name string) (string, error)) {
	a.program.UseSecrets(lookup)
}

// Run asks the program at intervals what to trust. The last answer stays in force while the program
// fails.
func (a *byProgram) Run(ctx context.Context, changed func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if a.describe(ctx) {
			changed()
		}
		timer.Reset(describeEvery)
	}
}

func (a *byProgram) describe(ctx context.Context) (news bool) {
	call, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	var d described
	err := a.program.Call(call, program.Call{Method: "describe", Aside: true}, &d)
	if err == nil {
		err = d.check()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && (a.err == nil || a.err.Error() != err.Error()) {
			a.program.Logger().Warn("authority's program does not say what to trust: what it said last stays in force",
				"error", err)
		}
		news = a.answer.Bundle == "" && a.err != nil && a.err.Error() != err.Error() // callers that wait get the reason
		a.err = err
		return news
	}
	news = d != a.answer
	a.answer, a.err = d, nil
	return news
}

// check validates a program's description and sets defaults.
func (d *described) check() error {
	if d.API != API {
		return fmt.Errorf("the program speaks version %d of the protocol, and this coordinator version %d", d.API, API)
	}
	if len(d.Bundle) > maxBundle || len(d.Issuer) > 200 {
		return fmt.Errorf("the bundle has %d bytes and the issuer %d: at most %d and 200 can be", len(d.Bundle),
			len(d.Issuer), maxBundle)
	}
	list, err := certificatesIn([]byte(d.Bundle))
	if err != nil || len(list) == 0 {
		return fmt.Errorf("the bundle is no list of certificates as PEM: %w", errors.Join(err,
			errors.New("it must have one at least")))
	}
	var text bytes.Buffer
	for _, der := range list {
		if _, err := x509.ParseCertificate(der); err != nil {
			return fmt.Errorf("the bundle: %w", err)
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // writes to memory do not fail
	}
	d.Bundle = text.String()
	if d.Issuer == "" {
		sum := sha256.Sum256(text.Bytes())
		d.Issuer = hex.EncodeToString(sum[:16])
	}
	return nil
}

// certificatesIn returns the certificates in a PEM text, as DER.
func certificatesIn(text []byte) (list [][]byte, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			if len(bytes.TrimSpace(rest)) > 0 {
				return nil, errors.New("there is something that is no PEM")
			}
			return list, nil
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("there is a %.40q", block.Type)
		}
		list, text = append(list, block.Bytes), rest
	}
}

func (a *byProgram) Trusted() (bundle []byte, issuer string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answer.Bundle == "" {
		return nil, "", a.err
	}
	return []byte(a.answer.Bundle), a.answer.Issuer, nil
}

func (a *byProgram) sign(ctx context.Context, _ crypto.PublicKey, request []byte, o Order) (chain [][]byte, err error) {
	var answer signed
	err = a.program.Call(ctx, program.Call{Method: "sign", Instance: o.Instance, Params: signParams{
		Request: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})),
		Names:   o.Names, KeyType: o.KeyType, Lifetime: o.Lifetime.Seconds(),
	}}, &answer)
	if err != nil {
		return nil, err
	}
	return certificatesIn([]byte(answer.Chain))
}
