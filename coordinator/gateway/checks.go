package gateway

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// checkSpecs converts the checks of a record for its agent (DET-9).
func checkSpecs(list []store.Check) []*protocol.CheckSpec {
	var out []*protocol.CheckSpec
	for i := range list {
		out = append(out, checkSpec(&list[i]))
	}
	return out
}

func checkSpec(c *store.Check) *protocol.CheckSpec {
	s := &protocol.CheckSpec{
		Name: c.Name, Interval: durationpb.New(c.Interval.D()), Timeout: durationpb.New(c.Timeout.D()),
		UnhealthyThreshold: uint32(c.UnhealthyThreshold), HealthyThreshold: uint32(c.HealthyThreshold),
		Optional: c.Optional,
	}
	switch {
	case c.HTTP != nil:
		h := c.HTTP
		s.Kind = &protocol.CheckSpec_Http{Http: &protocol.HTTPCheck{
			Scheme: h.Scheme, Host: h.Host, Port: string(h.Port), Path: h.Path, Method: h.Method, Headers: h.Headers,
			Status: h.Status,
			Body:   h.Body, BodyRegexp: h.BodyRegexp, FollowRedirects: h.FollowRedirects,
			Tls: tlsOptions(h.SkipVerify, h.CAFile, h.ServerName),
		}}
	case c.TCP != nil:
		s.Kind = &protocol.CheckSpec_Tcp{Tcp: &protocol.TCPCheck{Host: c.TCP.Host, Port: string(c.TCP.Port)}}
	case c.GRPC != nil:
		g := c.GRPC
		s.Kind = &protocol.CheckSpec_Grpc{Grpc: &protocol.GRPCCheck{
			Host: g.Host, Port: string(g.Port), Service: g.Service, Encrypted: g.TLS,
			Tls: tlsOptions(g.SkipVerify, g.CAFile, g.ServerName),
		}}
	case c.Exec != nil:
		s.Kind = &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: c.Exec.Run}}
	case c.Process != nil:
		s.Kind = &protocol.CheckSpec_Process{Process: &protocol.ProcessCheck{
			Name:    c.Process.Name,
			PidFile: c.Process.PIDFile,
		}}
	}
	return s
}

func tlsOptions(skipVerify bool, caFile, serverName string) *protocol.TLSOptions {
	if !skipVerify && caFile == "" && serverName == "" {
		return nil
	}
	return &protocol.TLSOptions{SkipVerify: skipVerify, CaFile: caFile, ServerName: serverName}
}
