package notice

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// gcp reads Compute Engine's metadata server.
type gcp struct{ metadata }

// preemptLeft is how long a preempted machine has to shut down, counted from the moment the notice
// appears.
const preemptLeft = 30 * time.Second

func (s *gcp) look(ctx context.Context) (*sighting, error) {
	preempted, err := s.value(ctx, "preempted")
	if err != nil {
		return nil, err
	}
	switch preempted {
	case "TRUE":
		return &sighting{
			id: "preempted", kind: "preempted", why: "Compute Engine preempts this machine",
			left: preemptLeft, timed: true,
		}, nil
	case "FALSE":
	default:
		return nil, fmt.Errorf("instance/preempted is %.100q: neither TRUE nor FALSE", preempted)
	}
	event, err := s.value(ctx, "maintenance-event")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(event, "TERMINATE") {
		return &sighting{
			id: event, kind: "maintenance",
			why: "Compute Engine ends this machine for maintenance of its host",
		}, nil
	}
	return nil, nil
}

func (s *gcp) value(ctx context.Context, name string) (string, error) {
	a, err := s.get(ctx, "/computeMetadata/v1/instance/"+name, map[string]string{"Metadata-Flavor": "Google"})
	if err != nil {
		return "", err
	}
	if a.header.Get("Metadata-Flavor") != "Google" { // Google's own clients check this too
		return "", fmt.Errorf("get instance/%s: the answer is not from a metadata server", name)
	}
	return a.body, nil
}
