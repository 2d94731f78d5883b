"""What a journal holds, as people and programs read it: text, JSON, and pages that look good."""
