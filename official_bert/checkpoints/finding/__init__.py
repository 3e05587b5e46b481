"""Models by folder, by name on the hub, or by address.

Begin with `resolve.load`, which `official_bert.load` calls: it finds the folder that a name stands
for, asks which format it has, and lets that format's module read it. `hub` downloads.
"""
