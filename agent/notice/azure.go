package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// azure reads the scheduled events of Azure's metadata service.
type azure struct {
	metadata
	name string // this machine's name in the events
}

const (
	azureName   = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
	azureEvents = "/metadata/scheduledevents?api-version=2020-07-01"
)

func (*azure) slowAtFirst() bool { return true }

func (s *azure) look(ctx context.Context) (*sighting, error) {
	header := map[string]string{"Metadata": "true"}
	if s.name == "" {
		a, err := s.get(ctx, azureName, header)
		if err != nil {
			return nil, err
		}
		if a.body == "" || len(a.body) > 200 {
			return nil, errors.New("read this machine's name: invalid answer")
		}
		s.name = a.body
	}
	a, err := s.get(ctx, azureEvents, header)
	if err != nil {
		return nil, err
	}
	var said struct {
		Events *[]azureEvent
	}
	if err := json.Unmarshal([]byte(a.body), &said); err != nil {
		return nil, fmt.Errorf("read scheduled events: %w", err)
	}
	if said.Events == nil {
		return nil, errors.New("read scheduled events: there is no list of them")
	}
	var first *sighting
	for _, e := range *said.Events {
		if !e.ends(s.name) {
			continue
		}
		found, err := e.sighting(a.now)
		if err != nil {
			return nil, err
		}
		if first == nil || found.left < first.left {
			first = found
		}
	}
	return first, nil
}

type azureEvent struct {
	EventID     string `json:"EventId"`
	EventType   string
	EventStatus string
	Resources   []string
	NotBefore   string // empty once it has started
	Description string
}

// ends reports whether the event takes this machine away. After a reboot, a freeze or a
// redeployment the machine is back.
func (e azureEvent) ends(name string) bool {
	if e.EventType != "Preempt" && e.EventType != "Terminate" {
		return false
	}
	return slices.ContainsFunc(e.Resources, func(r string) bool { return strings.EqualFold(r, name) })
}

func (e azureEvent) sighting(now time.Time) (*sighting, error) {
	found := &sighting{
		id: e.EventID, kind: strings.ToLower(e.EventType),
		why: "Azure has scheduled the end of this machine: " + e.EventType, timed: true,
	}
	if e.Description != "" {
		found.why += ": " + e.Description
	}
	if e.NotBefore == "" {
		return found, nil
	}
	at, err := http.ParseTime(e.NotBefore)
	if err != nil {
		if at, err = time.Parse(time.RFC3339, e.NotBefore); err != nil {
			return nil, fmt.Errorf("read scheduled event %.100s: NotBefore: %w", e.EventID, err)
		}
	}
	found.left = at.Sub(now)
	return found, nil
}
