package web

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
)

// TestMain allows more time than operators have: beside other tests an answer takes as long as it
// takes.
func TestMain(m *testing.M) {
	headerTime, answerTime = 15*time.Second, 5*time.Minute
	m.Run()
}

// Views is what a server's pages are derived from.
func (s *Server) Views() *view.Source { return s.views }
