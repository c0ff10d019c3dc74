package trouble

import (
	"context"
	"time"
)

var ofDisks = []Kind{
	{
		Name: "machines-disk-full", Weight: 2, Takes: []Part{Disks}, Least: 3 * time.Second, Most: 15 * time.Second,
		Do: machinesDiskFull,
	},
	{
		Name: "machines-disk-read-only", Weight: 1, Takes: []Part{Disks}, Least: 3 * time.Second, Most: 15 * time.Second,
		Do: machinesDiskReadOnly,
	},
	{
		Name: "replica-disk-full", Weight: 1, Takes: []Part{Disks}, Least: 3 * time.Second, Most: 15 * time.Second,
		Do: replicaDiskFull,
	},
}

func machinesDiskFull(_ context.Context, s *Site) (string, func() error, error) {
	d := s.MachinesDisk()
	if d == nil {
		return "", nil, errNoTarget{"disk"}
	}
	return "of all machines", d.Free, d.Fill()
}

func machinesDiskReadOnly(_ context.Context, s *Site) (string, func() error, error) {
	d := s.MachinesDisk()
	if d == nil {
		return "", nil, errNoTarget{"disk"}
	}
	return "of all machines", d.MakeWritable, d.MakeReadOnly()
}

func replicaDiskFull(_ context.Context, s *Site) (string, func() error, error) {
	id, what := replica(s)
	d := s.ReplicaDisk(id)
	if d == nil {
		return "", nil, errNoTarget{"disk"}
	}
	return what, d.Free, d.Fill()
}
