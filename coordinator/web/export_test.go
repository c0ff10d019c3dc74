package web

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
)

// Tests run beside others on a busy machine, where an answer takes as long as it takes.
func init() { headerTime, answerTime = 15*time.Second, 5*time.Minute }

// Views is what a server's pages are derived from.
func (s *Server) Views() *view.Source { return s.views }
