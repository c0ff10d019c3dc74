package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// form is the format of an event for a kind of receiver.
type form struct {
	contentType string
	signed      bool // receivers verify the sender
	body        func(e *Event, now time.Time) any
}

var forms = map[string]form{
	"alertmanager": {contentType: "application/json", body: alerts},
	"cloudevents":  {contentType: "application/cloudevents+json; charset=utf-8", signed: true, body: cloudEvent},
	"slack":        {contentType: "application/json", body: message},
}

// encode returns the body of a request that is sent now. Its values can always be encoded.
func (f form) encode(e *Event, now time.Time) []byte {
	text, err := json.Marshal(f.body(e, now))
	if err != nil {
		panic(err)
	}
	return text
}

// cloudEvent is the event in CloudEvents' structured mode (https://cloudevents.io, version 1.0).
func cloudEvent(e *Event, _ time.Time) any {
	return struct {
		SpecVersion string    `json:"specversion"`
		ID          string    `json:"id"`
		Source      string    `json:"source"`
		Type        string    `json:"type"`
		Subject     string    `json:"subject,omitempty"`
		Time        time.Time `json:"time"`
		ContentType string    `json:"datacontenttype"`
		Data        *Event    `json:"data"`
	}{"1.0", e.ID, "/leasehold/" + e.Shard, "leasehold.decision", subject(e), e.At, "application/json", e}
}

func subject(e *Event) string {
	switch {
	case e.Instance != "":
		return "instances/" + e.Instance
	case e.Group != "":
		return "groups/" + e.Group
	default:
		return ""
	}
}

// message is the event for a receiver that understands Slack's incoming webhooks, as Mattermost and
// others do.
func message(e *Event, _ time.Time) any {
	text := fmt.Sprintf("*%s* %s: %s (%s)", e.Severity, e.Shard, e.Headline, e.Rule)
	if e.Missed > 0 {
		text += fmt.Sprintf("\n%d earlier events were not delivered", e.Missed)
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	return map[string]string{"text": escaped}
}

// alertLasts is how long an alert is active: an event is a moment, but Alertmanager needs a
// duration.
const alertLasts = 15 * time.Minute

// alerts is the event for Alertmanager's API, version 2. Alertmanager sends no notification of an
// alert that has ended, so an event that was retried for long gets its whole duration from now on.
// The clock of the event may be ahead of ours: an alert must not end before it starts.
func alerts(e *Event, now time.Time) any {
	ends := e.At.Add(alertLasts)
	if late := now.UTC().Add(alertLasts); late.After(ends) {
		ends = late
	}
	labels := map[string]string{
		"alertname": "LeaseholdDecision", "shard": e.Shard, "rule": e.Rule, "severity": string(e.Severity),
	}
	if e.Group != "" {
		labels["group"] = e.Group
	}
	if e.Instance != "" {
		labels["instance"] = e.Instance
	}
	annotations := map[string]string{"summary": e.Headline, "id": e.ID}
	if e.Missed > 0 {
		annotations["missed"] = fmt.Sprintf("%d earlier events were not delivered", e.Missed)
	}
	return []any{map[string]any{
		"labels": labels, "annotations": annotations, "startsAt": e.At, "endsAt": ends,
	}}
}
