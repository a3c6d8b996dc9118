"""What each command of the command line does. cli.py names them; this keeps their imports out of its start-up."""
