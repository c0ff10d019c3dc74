package swarm

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/agent/checks"
	"github.com/leasehold/leasehold/agent/host"
	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/workload"
)

// still is a host without any load.
type still struct{}

func (still) Run(ctx context.Context) { <-ctx.Done() }
func (still) Latest() host.Sample     { return host.Sample{CPUPercent: 1, Uptime: time.Hour} }

// none is an empty workload.
type none struct{}

func (none) Configure([]string, map[string]string) {}
func (none) Start(context.Context) error           { return nil }
func (none) Stop(context.Context)                  {}
func (none) Release() bool                         { return true }
func (none) StopReleased(context.Context) error    { return nil }
func (none) Kill()                                 {}
func (none) State() workload.State                 { return workload.State{} }
func (none) Changed() <-chan struct{}              { return nil }

// idle is a drain hook that is never run.
type idle struct{}

func (idle) Want(*workload.Drain)     {}
func (idle) Ended() string            { return "" }
func (idle) Changed() <-chan struct{} { return nil }
func (idle) Close(bool) bool          { return true }

// calm is a source without notices.
type calm struct{}

func (calm) Run(ctx context.Context)  { <-ctx.Done() }
func (calm) Watch(notice.Spec)        {}
func (calm) Latest() *notice.Notice   { return nil }
func (calm) Changed() <-chan struct{} { return nil }

// unchecked has no checks.
type unchecked struct{}

func (unchecked) Want(checks.Wanted)       {}
func (unchecked) States() []checks.State   { return nil }
func (unchecked) Changed() <-chan struct{} { return nil }
func (unchecked) Close()                   {}

// unfenced is a fence that is never used.
type unfenced struct{}

var errFence = errors.New("no group of a swarm asks for a fence")

func (unfenced) PowerOff(context.Context) error                             { return errFence }
func (unfenced) Command(context.Context, []string, map[string]string) error { return errFence }
