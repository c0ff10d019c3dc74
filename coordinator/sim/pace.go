package sim

import "time"

const mostJitter = 100 * time.Millisecond // as coordinator/pace.go has it

// pace is create_rate and create_burst of the shard, as coordinator/pace.go keeps them.
type pace struct {
	t       *term
	tokens  float64
	counted time.Duration // when tokens were counted last
}

func newPace(t *term) *pace {
	return &pace{t: t, tokens: float64(t.content.Shard.Record.Settings.CreateBurst), counted: t.w.clock}
}

// wait is how long a call has to wait for its turn.
func (p *pace) wait() time.Duration {
	if p == nil {
		return 0
	}
	settings := p.t.content.Shard.Record.Settings
	p.tokens = min(float64(settings.CreateBurst), p.tokens+settings.CreateRate*(p.t.w.clock-p.counted).Seconds())
	p.counted = p.t.w.clock
	p.tokens--
	if p.tokens >= 0 {
		return 0
	}
	return time.Duration(-p.tokens/settings.CreateRate*float64(time.Second)) + p.t.w.chance.upTo(mostJitter)
}
