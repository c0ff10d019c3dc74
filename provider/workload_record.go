package provider

// WorkloadFile is where an agent records the process of its workload, in its state directory. A
// provider whose machines are processes finds a workload by it whose agent was killed.
const WorkloadFile = "workload.json"

// WorkloadProcess is the part of that file which names one process for good.
type WorkloadProcess struct {
	Kernel string `json:"kernel"` // the kernel's boot, in which the others have a meaning
	PID    int    `json:"pid"`
	Start  string `json:"start"` // its start time: /proc/<pid>/stat, field 22
}
