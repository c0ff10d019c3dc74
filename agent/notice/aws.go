package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// aws reads EC2's instance metadata service. It uses only version 2, which every instance has.
type aws struct {
	metadata
	token string
	renew time.Time // when to get another token
}

// tokenTTL is the requested lifetime of a token: the longest that the service grants.
const tokenTTL = 6 * time.Hour

const awsAction = "/latest/meta-data/spot/instance-action"

func (s *aws) look(ctx context.Context) (*sighting, error) {
	a, err := s.ask(ctx, awsAction)
	if err != nil {
		return nil, err
	}
	switch a.status {
	case http.StatusNotFound:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, unexpected(http.MethodGet, awsAction, a.status)
	}
	var said struct {
		Action string    `json:"action"`
		Time   time.Time `json:"time"`
	}
	if err := json.Unmarshal([]byte(a.body), &said); err != nil {
		return nil, fmt.Errorf("read %s: %w", awsAction, err)
	}
	if said.Action == "" || said.Time.IsZero() {
		return nil, fmt.Errorf("read %s: it names no action or no time", awsAction)
	}
	return &sighting{
		id: a.body, kind: said.Action,
		why:  "EC2 will " + said.Action + " this spot instance at " + said.Time.UTC().Format(time.RFC3339),
		left: said.Time.Sub(a.now), timed: true,
	}, nil
}

// ask sends a request with a token. A token may expire early, for example while the machine was
// suspended: then ask gets one more.
func (s *aws) ask(ctx context.Context, path string) (answer, error) {
	fresh := s.token == "" || !time.Now().Before(s.renew)
	for {
		if fresh {
			if err := s.newToken(ctx); err != nil {
				return answer{}, err
			}
		}
		a, err := s.metadata.ask(ctx, http.MethodGet, path, map[string]string{"X-aws-ec2-metadata-token": s.token})
		if err != nil || a.status != http.StatusUnauthorized {
			return a, err
		}
		s.token = ""
		if fresh {
			return a, nil
		}
		fresh = true
	}
}

func (s *aws) newToken(ctx context.Context) error {
	const path = "/latest/api/token"
	a, err := s.metadata.ask(ctx, http.MethodPut, path, map[string]string{
		"X-aws-ec2-metadata-token-ttl-seconds": strconv.Itoa(int(tokenTTL.Seconds())),
	})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK || a.body == "" {
		return unexpected(http.MethodPut, path, a.status)
	}
	s.token, s.renew = a.body, time.Now().Add(tokenTTL/2)
	return nil
}
