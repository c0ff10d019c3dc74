package senses

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/stage"
)

// usual is the default number of agents of a scenario with many.
const usual = 60

var agents = flag.Int("agents", usual, "how many agents the scenarios about many have")

// atOnce is how many scenarios run at the same time: they wait for most of their time. If many
// started at once on a slow machine, agents would starve for as long as a lease lasts.
const atOnce = "7"

// built are the programs.
var built *stage.Programs

func TestMain(m *testing.M) { os.Exit(stage.Main(m, atOnce, &built)) }

// scene is a stage on which something goes wrong.
type scene struct{ *stage.Stage }

// newStage starts all processes and waits for a leader.
func newStage(t *testing.T, p stage.Plan) *scene {
	t.Helper()
	p.Programs = built
	p.Again = fmt.Sprintf("go test ./tests/senses -count=1 -v -agents %d -run '^%s$'", *agents, t.Name())
	if p.Interval == 0 && *agents > usual {
		p.Interval = 3 * time.Second // the interval that a thousand agents, etcd and coordinators manage on two processors
	}
	return &scene{stage.New(t, p)}
}

// another returns a replica that is not this one.
func (s *scene) another(than string) string {
	for i := range len(s.Addresses) {
		if id := string(rune('a' + i)); id != than {
			return id
		}
	}
	return ""
}

// statusSays fails if leasehold status lacks a text.
func (s *scene) statusSays(words ...string) {
	s.T.Helper()
	said := s.Leasehold("status")
	for _, w := range words {
		if !strings.Contains(said, w) {
			s.T.Errorf("leasehold status does not say %q:\n%s", w, said)
		}
	}
}
