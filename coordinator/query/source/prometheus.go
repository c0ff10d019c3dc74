package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/provider/program"
)

// PrometheusConfig is a source that answers PromQL, such as Prometheus, Thanos,
// Mimir or VictoriaMetrics.
type PrometheusConfig struct {
	Remote // its URL is the part before /api/v1/query
	Pace
	Query string `json:"query"`
}

type prometheus struct {
	remote
	settings query.Settings
	query    string
}

// NewPrometheus checks the configuration. It asks nothing.
func NewPrometheus(c PrometheusConfig) (Source, error) {
	p := &prometheus{query: c.Query}
	var err error
	if p.remote, err = c.open(); err != nil {
		return nil, err
	}
	if strings.ContainsAny(c.URL, "?#") {
		return nil, errors.New("url: must end before /api/v1/query: the query is a setting of its own")
	}
	if strings.TrimSpace(c.Query) == "" {
		return nil, errors.New("query: is missing")
	}
	p.settings, err = c.settings(strings.Contains(c.Query+c.URL, groupMark))
	return p, err
}

func (p *prometheus) Settings() query.Settings { return p.settings }

// vector is an answer of the API for instant queries.
type vector struct {
	Warnings []string `json:"warnings"`
	Partial  bool     `json:"isPartial"`
	Data     struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

func (p *prometheus) ask(ctx context.Context, group string) (float64, error) {
	of := func(text string) string { return strings.ReplaceAll(text, groupMark, group) }
	var v vector
	address := strings.TrimSuffix(of(p.url), "/") + "/api/v1/query?query=" + url.QueryEscape(of(p.query))
	if err := p.get(ctx, address, &v); err != nil {
		return 0, err
	}
	if len(v.Warnings) > 0 { // Thanos warns if some of its stores do not answer
		return 0, &query.Error{
			Kind: query.NoValue, Message: "the answer has warnings, so it may be of a part only: " + program.Clip(v.Warnings[0]),
		}
	}
	if v.Partial { // VictoriaMetrics says so, without a warning, if some of its storage does not answer
		return 0, &query.Error{Kind: query.NoValue, Message: "the answer is of a part of the data only"}
	}
	unreadable := &query.Error{Kind: query.Unreadable, Message: "the answer is not one of Prometheus' API"}
	var sample [2]any // time and value
	switch v.Data.Type {
	case "scalar":
		if json.Unmarshal(v.Data.Result, &sample) != nil {
			return 0, unreadable
		}
	case "vector":
		var list []struct {
			Value [2]any `json:"value"`
		}
		if json.Unmarshal(v.Data.Result, &list) != nil {
			return 0, unreadable
		}
		if len(list) != 1 {
			return 0, &query.Error{Kind: query.NoValue, Message: fmt.Sprintf(
				"the query returns %d series, and must return one: sum() and the like make one of many", len(list))}
		}
		sample = list[0].Value
	default:
		return 0, &query.Error{Kind: query.NoValue, Message: fmt.Sprintf(
			"the query returns a %.20q, and must return an instant vector or a scalar", v.Data.Type)}
	}
	return numberOf(sample[1])
}
