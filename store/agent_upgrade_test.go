package store_test

import "testing"

// A wrong version of the agent is shown as it was written.
func TestWrongVersionsOfTheAgent(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.0":  `agent.version: "1.2.0": must be "auto" or a version like v1.2.0 (PROV-7)`,
		"latest": `agent.version: "latest": must be "auto" or a version like v1.2.0 (PROV-7)`,
	} {
		if err := with(t, "agent.version", version).Validate(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", version, err, want)
		}
	}
}
