"""Recording inside the user's program: functions get a first statement that looks at their arguments."""
