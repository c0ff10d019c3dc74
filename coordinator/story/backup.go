package story

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
)

// backupLate is the age at which the last backup is a problem (DAY-3).
const backupLate = 24 * time.Hour

// backupProblems reports that the shard was not backed up for a day, and that a scheduled backup
// fails.
func backupProblems(st *Shard, now time.Time) []Problem {
	var found []Problem
	last, created := st.Backup.Record, st.Shard.Record.Created
	if f := last.Failure; f != nil && f.At.After(last.At) {
		next := "correct --backup-dir, or what --backup-command runs"
		if f.Full {
			next = "free space on that disk, or name a directory on another as --backup-dir"
		}
		found = append(found, Problem{
			About: f.By, Rule: "DAY-2",
			What:     fmt.Sprintf("its backup failed %s ago: %.300s", reason.Age(now, f.At), f.Why),
			Remedies: Advise(next + "; it is tried again every minute"),
		})
	}
	switch {
	case !st.Shard.Present() || created.IsZero() || now.Sub(created) < backupLate || now.Sub(last.At) < backupLate:
	case last.At.IsZero():
		found = append(found, Problem{
			About: st.Name, Rule: "DAY-2", What: "it was never backed up",
			Remedies: Advise("leasehold backup FILE; or start the coordinators with --backup-dir DIR"),
		})
	default:
		found = append(found, Problem{
			About: st.Name, Rule: "DAY-2",
			What: fmt.Sprintf("no backup for %s: the last was made by %s, to %.200s", reason.Age(now, last.At), last.By,
				last.To),
			Remedies: Advise("leasehold backup FILE; or start the coordinators with --backup-dir DIR"),
		})
	}
	return found
}
