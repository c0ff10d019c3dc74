package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/leasehold/leasehold/provider"
)

// Leasehold's tags.
const (
	tagPrefix   = "leasehold:"
	tagShard    = tagPrefix + "shard"
	tagInstance = tagPrefix + "instance"
	tagGroup    = tagPrefix + "group"
	tagZone     = tagPrefix + "zone"
	tagName     = "Name" // what EC2's console shows
)

// instance is a machine as EC2 describes it.
type instance struct{ types.Instance }

func (i instance) id() string { return aws.ToString(i.InstanceId) }

func (i instance) tag(name string) string {
	for _, t := range i.Tags {
		if aws.ToString(t.Key) == name {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

func (i instance) state() types.InstanceStateName {
	if i.State == nil {
		return ""
	}
	return i.State.Name
}

func (i instance) terminated() bool { return i.state() == types.InstanceStateNameTerminated }

// ending is a machine that never runs again.
func (i instance) ending() bool {
	return i.terminated() || i.state() == types.InstanceStateNameShuttingDown
}

func (i instance) spot() bool { return i.InstanceLifecycle == types.InstanceLifecycleTypeSpot }

// isOf reports whether this provider made the machine for the instance of the shard. A copy that
// made from it may have its tags, but never its client token.
func (i instance) isOf(k key) bool {
	return i.tag(tagShard) == k.shard && i.tag(tagInstance) == k.instance &&
		strings.HasPrefix(aws.ToString(i.ClientToken), tokenPrefix(k))
}

// tokenPrefix is how all client tokens of a machine begin.
func tokenPrefix(k key) string {
	sum := sha256.Sum256([]byte(k.shard + "\x00" + k.instance))
	return "leasehold-" + hex.EncodeToString(sum[:20]) + "-"
}

// tokenOf is the n-th client token of a machine, of at most 64 characters.
func tokenOf(k key, n int) string { return tokenPrefix(k) + strconv.Itoa(n) }

// reason is EC2's code of why the machine is in its state.
func (i instance) reason() string {
	if i.StateReason == nil {
		return ""
	}
	return aws.ToString(i.StateReason.Code)
}

// byOrder: a user with rights on the account stopped or terminated it: Leasehold, or a person.
func (i instance) byOrder() bool { return strings.HasPrefix(i.reason(), "Client.UserInitiated") }

// endedByItself is a terminated machine whose end was not ordered, as EC2 reports.
func (i instance) endedByItself() bool { return i.terminated() && i.reason() != "" && !i.byOrder() }

// notStarted are EC2's reasons for a machine that it accepted and could not start.
var notStarted = []string{
	"Client.InternalError", "Client.InvalidSnapshot.NotFound", "Client.VolumeLimitExceeded", "Client.LaunchFailed",
	"Server.InsufficientInstanceCapacity",
}

// machine is what is reported of it.
func (i instance) machine() provider.Machine {
	m := provider.Machine{
		Instance: i.tag(tagInstance), Shard: i.tag(tagShard), Group: i.tag(tagGroup), Zone: i.tag(tagZone), Ref: i.id(),
		Address: aws.ToString(i.PrivateIpAddress), Foreign: !i.isOf(key{i.tag(tagShard), i.tag(tagInstance)}),
	}
	m.State, m.Why = i.meaning()
	return m
}

func (i instance) meaning() (state provider.State, why string) {
	if i.StateReason != nil {
		why = aws.ToString(i.StateReason.Message)
		if why == "" {
			why = i.reason()
		}
	}
	switch i.state() {
	case types.InstanceStateNamePending:
		return provider.StateStarting, why
	case types.InstanceStateNameRunning:
		return provider.StateRunning, ""
	case types.InstanceStateNameStopping, types.InstanceStateNameShuttingDown:
		return provider.StateStopping, why
	case types.InstanceStateNameStopped, types.InstanceStateNameTerminated:
		switch {
		case i.byOrder():
			return provider.StateStopped, why
		case slices.Contains(notStarted, i.reason()):
			return provider.StateFailed, why
		case why == "":
			why = "EC2 gives no reason"
		}
		return provider.StateCrashed, why
	default:
		return provider.StateUnknown, fmt.Sprintf("EC2 says %q", i.state())
	}
}
