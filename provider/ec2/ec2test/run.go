package ec2test

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider/amazon/amazontest"
)

const maxUserData = 16 << 10

// run is RunInstances, of one machine.
func (s *Server) run(q *amazontest.Query) (any, *amazontest.Fault) {
	want, f := s.wanted(q)
	if f != nil {
		return nil, f
	}
	zone := s.config.Subnets[want.subnet].Zone
	clientToken := q.Text("ClientToken")
	if len(clientToken) > 64 {
		return nil, amazontest.Refuse("InvalidParameterValue", "Client token is longer than 64 characters")
	}
	if f := q.Done(); f != nil {
		return nil, f
	}
	text := requestText(q.Form())
	if t, is := s.tokens[zone+"/"+clientToken]; is && clientToken != "" {
		if t.request != text {
			return nil, amazontest.Refuse("IdempotentParameterMismatch",
				"The client token %s has already been used for a request with different parameters", clientToken)
		}
		if m := s.machines[t.machine]; m != nil {
			return launched(m), nil
		}
	}
	if f := s.refused(want, zone); f != nil {
		if s.config.RefusedBind {
			s.tokens[zone+"/"+clientToken] = token{request: text}
		}
		return nil, f
	}
	m := s.newMachine(want.subnet)
	m.typ, m.image, m.token, m.spot = want.typ, want.image, clientToken, want.spot
	m.endsByShutdown, m.tags, m.volumeTags, m.userData = want.endsByShutdown, want.tags, want.volumeTags, want.userData
	if n, limited := s.room[[2]string{m.typ, zone}]; limited {
		s.room[[2]string{m.typ, zone}] = n - 1
	}
	if clientToken != "" {
		s.tokens[zone+"/"+clientToken] = token{request: text, machine: m.id}
	}
	s.noteDoubles(m)
	if len(s.broken) > 0 {
		reason := s.broken[0]
		s.broken = s.broken[1:]
		m.launched = m.made
		m.after(s.config.BootTime, func() { m.remove(reason, reason+": launch failed") })
	} else {
		m.boot()
	}
	return launched(m), nil
}

// noteDoubles notes an instance that has another live machine already.
func (s *Server) noteDoubles(m *machine) {
	for _, other := range s.machines {
		if other != m && other.state != terminated && other.tags["leasehold:instance"] != "" &&
			other.tags["leasehold:instance"] == m.tags["leasehold:instance"] &&
			other.tags["leasehold:shard"] == m.tags["leasehold:shard"] {
			s.doubles[m.tags["leasehold:shard"]+"/"+m.tags["leasehold:instance"]] = true
		}
	}
}

func (s *Server) newMachine(subnet string) *machine {
	s.made++
	s.used[subnet]++
	m := &machine{
		s: s, id: fmt.Sprintf("i-%017x", s.made), subnet: subnet, made: time.Now(),
		address: fmt.Sprintf("10.%d.%d.%d", s.made>>16&255, s.made>>8&255, s.made&255),
	}
	s.machines[m.id] = m
	return m
}

// requestText is what has to be equal of two requests with one client token.
func requestText(form url.Values) string {
	same := url.Values{}
	for k, v := range form {
		if k != "ClientToken" {
			same[k] = v
		}
	}
	return same.Encode()
}

// wanted reads what a machine is to be, and refuses what EC2 would refuse of any account.
func (s *Server) wanted(q *amazontest.Query) (m machine, f *amazontest.Fault) {
	if q.Number("MinCount") != 1 || q.Number("MaxCount") != 1 {
		return m, amazontest.Refuse("InvalidParameterValue", "MinCount and MaxCount must be 1 here")
	}
	m.image, m.typ, m.subnet = q.Text("ImageId"), q.Text("InstanceType"), q.Text("SubnetId")
	groups := q.List("SecurityGroupId")
	for _, n := range q.Groups("NetworkInterface") {
		if m.subnet != "" || len(groups) > 0 {
			return m, amazontest.Refuse("InvalidParameterCombination",
				"Network interfaces and an instance-level subnet ID may not be specified on the same request")
		}
		m.subnet = q.Text(n + "SubnetId")
		for _, name := range []string{"DeviceIndex", "AssociatePublicIpAddress", "DeleteOnTermination"} {
			q.Text(n + name)
		}
		q.List(n + "SecurityGroupId")
	}
	template := q.Text("LaunchTemplate.LaunchTemplateId") + q.Text("LaunchTemplate.LaunchTemplateName")
	q.Text("LaunchTemplate.Version")
	q.Text("KeyName")
	q.Text("IamInstanceProfile.Name")
	q.Text("IamInstanceProfile.Arn")
	if _, is := s.config.Images[m.image]; !is && (m.image != "" || template == "") {
		return m, amazontest.Refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", m.image)
	}
	if _, is := s.config.Types[m.typ]; !is && (m.typ != "" || template == "") {
		return m, amazontest.Refuse("InvalidParameterValue", "Invalid value '%s' for InstanceType.", m.typ)
	}
	if _, is := s.config.Subnets[m.subnet]; !is {
		return m, amazontest.Refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", m.subnet)
	}
	if q.Text("MetadataOptions.HttpTokens") != "required" || q.Text("MetadataOptions.HttpEndpoint") != "enabled" ||
		q.Number("MetadataOptions.HttpPutResponseHopLimit") < 1 {
		return m, amazontest.Refuse("InvalidParameterValue", "This account requires IMDSv2")
	}
	for _, b := range q.Groups("BlockDeviceMapping") {
		if device := q.Text(b + "DeviceName"); device != s.config.Images[m.image] {
			return m, amazontest.Refuse("InvalidBlockDeviceMapping", "%s is not the root device of %s", device, m.image)
		}
		if q.Text(b+"Ebs.DeleteOnTermination") != "true" || q.Number(b+"Ebs.VolumeSize") < 1 {
			return m, amazontest.Refuse("InvalidBlockDeviceMapping", "the root disk needs a size, and must go with its machine")
		}
		q.Text(b + "Ebs.VolumeType")
		q.Text(b + "Ebs.Encrypted")
	}
	if m.userData, f = userData(q.Text("UserData")); f != nil {
		return m, f
	}
	if f := wantedMarket(q, &m); f != nil {
		return m, f
	}
	for _, spec := range q.Groups("TagSpecification") {
		tags := map[string]string{}
		for _, t := range q.Groups(spec + "Tag") {
			key := q.Text(t + "Key")
			if tags[key] = q.Text(t + "Value"); len(tags) > 50 || strings.HasPrefix(key, "aws:") || len(key) > 128 {
				return m, amazontest.Refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are "+
					"reserved; at most 50 tags of 128 characters")
			}
		}
		switch kind := q.Text(spec + "ResourceType"); kind {
		case "instance":
			m.tags = tags
		case "volume":
			m.volumeTags = tags
		case "network-interface", "spot-instances-request":
		default:
			return m, amazontest.Refuse("InvalidParameterValue", "'%s' is not a valid taggable resource type", kind)
		}
	}
	return m, nil
}

func userData(text string) ([]byte, *amazontest.Fault) {
	data, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return nil, amazontest.Refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	case len(data) > maxUserData:
		return nil, amazontest.Refuse("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	return data, nil
}

func wantedMarket(q *amazontest.Query, m *machine) *amazontest.Fault {
	m.spot = q.Text("InstanceMarketOptions.MarketType") == "spot"
	kind := q.Text("InstanceMarketOptions.SpotOptions.SpotInstanceType")
	interruption := q.Text("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior")
	m.endsByShutdown = q.Text("InstanceInitiatedShutdownBehavior") == "terminate"
	if m.spot && (kind != "one-time" || interruption != "terminate" || !m.endsByShutdown) {
		return amazontest.Refuse("InvalidParameterCombination", "One-time Spot machines can only be terminated")
	}
	return nil
}

// refused is what this account, or this zone, has no room for.
func (s *Server) refused(want machine, zone string) *amazontest.Fault {
	processors, spots := s.config.Types[want.typ], 0
	for _, m := range s.machines {
		switch {
		case m.state == terminated || m.state == stopped:
		case m.spot:
			spots++
		default:
			processors += s.config.Types[m.typ]
		}
	}
	subnet := s.config.Subnets[want.subnet]
	room, limited := s.room[[2]string{want.typ, zone}]
	switch {
	case want.spot && s.config.Spots > 0 && spots >= s.config.Spots:
		return amazontest.Refuse("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	case !want.spot && s.config.Processors > 0 && processors > s.config.Processors:
		return amazontest.Refuse("VcpuLimitExceeded", "You have requested more vCPU capacity than your "+
			"current vCPU limit of %d allows",
			s.config.Processors)
	case s.used[want.subnet] >= subnet.Free:
		return amazontest.Refuse("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s'",
			want.subnet)
	case limited && room < 0:
		return amazontest.Refuse("Unsupported", "Your requested instance type (%s) is not supported in "+
			"your requested Availability Zone (%s).",
			want.typ, zone)
	case limited && room == 0:
		return &amazontest.Fault{Status: 500, Code: "InsufficientInstanceCapacity", Message: fmt.Sprintf(
			"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", want.typ, zone)}
	}
	return nil
}

type runResponse struct {
	XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ RunInstancesResponse"`
	reservation
}

func launched(m *machine) any {
	return runResponse{reservation: reservation{ID: "r-" + m.id[2:], Instances: []item{m.item(true)}}}
}
