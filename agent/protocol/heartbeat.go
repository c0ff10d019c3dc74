package protocol

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// ReportDue returns the age from which a report is replaced even if nothing has changed: a minute,
// or less for agents that send more often than every ten seconds. The next message follows an
// interval later, so the message nearest to that age is the report.
func ReportDue(interval time.Duration) time.Duration {
	return min(time.Minute, 6*interval) - interval/2
}

// Stands reports whether an earlier report still has everything that others act on. Load, uptime
// and the progress of checks differ in every report; a heartbeat does not need them.
func (x *Report) Stands(now *Report) bool {
	if x.GetHealthy() != now.GetHealthy() || x.GetWhy() != now.GetWhy() || len(x.GetChecks()) != len(now.GetChecks()) {
		return false
	}
	for i, a := range x.GetChecks() {
		b := now.GetChecks()[i]
		if a.GetName() != b.GetName() || a.GetKind() != b.GetKind() || a.GetHealthy() != b.GetHealthy() ||
			a.GetOptional() != b.GetOptional() || a.GetPending() != b.GetPending() {
			return false
		}
	}
	if len(x.GetFiles()) != len(now.GetFiles()) {
		return false
	}
	for i, a := range x.GetFiles() {
		if !proto.Equal(a, now.GetFiles()[i]) {
			return false
		}
	}
	return x.GetConfigHash() == now.GetConfigHash() && x.GetRestarted() == now.GetRestarted() &&
		x.GetDrained() == now.GetDrained() && x.GetTrust() == now.GetTrust() &&
		proto.Equal(x.GetCertificate(), now.GetCertificate()) &&
		proto.Equal(x.GetUpgrade(), now.GetUpgrade()) &&
		proto.Equal(x.GetWorkloadExit(), now.GetWorkloadExit()) && sameNotice(x.GetNotice(), now.GetNotice())
}

// sameNotice reports whether two notices are the same. Their time left always differs.
func sameNotice(a, b *Notice) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.GetKind() == b.GetKind() && a.GetWhy() == b.GetWhy() && proto.Equal(a.GetAt(), b.GetAt())
}
