package agent

import (
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/secrets"
)

// secretsOf returns the secrets that a replica sent.
func secretsOf(w *protocol.Wanted) []secrets.Received {
	var list []secrets.Received
	for _, s := range w.GetSecrets() {
		list = append(list, secrets.Received{
			Variable: s.GetVariable(), Name: s.GetName(), Value: s.GetValue(), Revision: s.GetRevision(),
			Problem: s.GetProblem(),
		})
	}
	return list
}

// namesOf returns the names of the secrets, by variable. Only names are ever written to disk.
func namesOf(w *protocol.Wanted) map[string]string {
	names := map[string]string{}
	for _, s := range w.GetSecrets() {
		names[s.GetVariable()] = s.GetName()
	}
	if len(names) == 0 {
		return nil
	}
	return names
}
