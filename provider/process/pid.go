package process

import "fmt"

// PID is the process ID of the machine's agent, for people who want to look at it. It fails if the
// agent does not run.
func (p *Provider) PID(instance string) (int, error) {
	if err := checkName("instance", instance); err != nil {
		return 0, err
	}
	r, err := p.read(instance)
	if err != nil {
		return 0, err
	}
	runs, err := p.agentRuns(r)
	if err != nil {
		return 0, err
	}
	if !runs {
		return 0, fmt.Errorf("the agent of %s does not run", instance)
	}
	return r.PID, nil
}
