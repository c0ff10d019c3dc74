package store

import "time"

// Webhook says how far the deliveries to a webhook have come (WEB-3).
type Webhook struct {
	Schema int    `json:"schema"`
	Name   string `json:"name"`
	// Revision is how far the journal is done: each of its entries up to there was delivered, does not
	// pass the webhook's filters, or is among the dead letters. At is the time of the last of them.
	Revision Revision  `json:"revision"`
	At       time.Time `json:"at"`
	// Trying is the ID of the event that failed so far, Since when it was tried first, and Why what
	// went wrong last.
	Trying string    `json:"trying,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Tried  Duration  `json:"tried,omitempty"` // for how long, by the clocks of the leaders that tried
	Why    string    `json:"why,omitempty"`
	// Missed is how many events were given up since the last delivery: the next one names it.
	Missed int `json:"missed,omitempty"`
	// DeadLetters are the last events that were given up, of DeadCount in all.
	DeadLetters []DeadLetter `json:"dead_letters,omitempty"`
	DeadCount   int          `json:"dead_count,omitempty"`
}

// DeadLetter is an event that a webhook did not take.
type DeadLetter struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"` // of the event
	GivenUp  time.Time `json:"given_up"`
	Rule     string    `json:"rule"`
	Group    string    `json:"group,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Why      string    `json:"why"`
}
