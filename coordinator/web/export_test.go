package web

import "github.com/leasehold/leasehold/coordinator/view"

// Views is what a server's pages are derived from.
func (s *Server) Views() *view.Source { return s.views }
