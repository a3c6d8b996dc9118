"""What people and programs are told of a result: a terminal's text, the JSON document, what is installed here."""
