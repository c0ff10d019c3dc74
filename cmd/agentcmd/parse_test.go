package agentcmd

import (
	"strings"
	"testing"
)

func TestFlagsComeBeforeTheEnvironment(t *testing.T) {
	t.Setenv("LEASEHOLD_BOOTSTRAP", "/from/environment")
	t.Setenv("LEASEHOLD_BOOT_ID", "b1")
	c, err := Parse([]string{"--bootstrap", "/from/flag"})
	if err != nil || c.Bootstrap != "/from/flag" || c.BootID != "b1" || c.Farewell != "shutdown" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Parse([]string{"--nonsense"}); err == nil || !strings.Contains(err.Error(), "--nonsense") {
		t.Errorf("nonsense: %v", err)
	}
}
