"""What a report says, a module or folder for each topic: its facts, findings, sections and decision columns, as `REPORT`."""
