package cli

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/webhook"
	"github.com/leasehold/leasehold/store"
)

// WebhookList is the command webhook list.
type WebhookList struct{}

// Run lists the webhooks.
func (c *WebhookList) Run(ctx context.Context, inv *Invocation) error {
	l, err := inv.list(ctx, inv.keys().Of(store.KindWebhooks), 0)
	if err != nil {
		return err
	}
	t := output.Table{Columns: []output.Column{
		{Title: "WEBHOOK"},
		{Title: "STATE"},
		{Title: "REVISION", Right: true},
		{Title: "GIVEN-UP", Right: true},
		{Title: "LAST-FAILURE", Cut: true},
	}}
	all := decodeSome[store.Webhook](l)
	shown := make([]store.Webhook, 0, len(all))
	for _, v := range all {
		w := v.Record
		shown = append(shown, w)
		state := "delivers"
		if !w.Since.IsZero() {
			state = "fails for " + reason.Age(inv.env.Now(), w.Since)
		}
		t.Add(w.Name, state, strconv.FormatInt(int64(w.Revision), 10), strconv.Itoa(w.DeadCount), orDash(w.Why))
	}
	if printed, err := inv.records(shown); printed {
		return err
	}
	if len(all) == 0 {
		inv.note("no coordinator that led this shard had a webhook in the file that --providers names")
		return nil
	}
	return t.Write(inv.screen(), inv.wide())
}

// WebhookTest is the command webhook test.
type WebhookTest struct {
	Name      string `arg:"" help:"Name of the webhook."`
	Providers string `required:"" placeholder:"FILE" env:"LEASEHOLD_PROVIDERS" help:"The coordinator's file, which names the webhook."`
}

// Run sends a test event.
func (c *WebhookTest) Run(ctx context.Context, inv *Invocation) error {
	hooks, err := inv.env.Adapters.Kinds.Webhooks(c.Providers)
	if err != nil {
		return failure(Usage, "correct "+c.Providers, "%s", err)
	}
	names := make([]string, 0, len(hooks))
	for _, h := range hooks {
		if names = append(names, h.Name()); h.Name() != c.Name {
			continue
		}
		err := h.Send(ctx, &webhook.Event{
			Schema: 1, ID: "test-" + rand.Text(), At: inv.env.Now().UTC(), Shard: inv.flags.Shard, Severity: reason.Info,
			Rule:     "WEB-3",
			Headline: "a test, sent by leasehold webhook test",
		})
		if err != nil {
			return failure(Failed, "check the webhook's URL, and what its receiver logs", "webhook %s: %s", c.Name, err)
		}
		inv.note("webhook %s took a test event", c.Name)
		return nil
	}
	return failure(NotFound, "name one of: "+strings.Join(names, ", "), "%s names no webhook %q", c.Providers, c.Name)
}
