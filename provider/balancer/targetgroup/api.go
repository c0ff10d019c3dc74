package targetgroup

import (
	"context"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
)

// api is what is used of the SDK's client. As in provider/ec2 the client itself is no field of
// anything that becomes an interface, so that the linker leaves its other methods out.
type api struct {
	DescribeTargetGroups operation[elb.DescribeTargetGroupsInput, elb.DescribeTargetGroupsOutput]
	DescribeTargetHealth operation[elb.DescribeTargetHealthInput, elb.DescribeTargetHealthOutput]
	RegisterTargets      operation[elb.RegisterTargetsInput, elb.RegisterTargetsOutput]
	DeregisterTargets    operation[elb.DeregisterTargetsInput, elb.DeregisterTargetsOutput]
}

type operation[In, Out any] = func(context.Context, *In, ...func(*elb.Options)) (*Out, error)

func apiOf(c *elb.Client) api {
	return api{
		DescribeTargetGroups: c.DescribeTargetGroups, DescribeTargetHealth: c.DescribeTargetHealth,
		RegisterTargets: c.RegisterTargets, DeregisterTargets: c.DeregisterTargets,
	}
}
