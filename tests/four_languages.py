"""Messages in four languages, written for the tests: eight classes, three texts per class and language."""

from __future__ import annotations

TEXTS: dict[str, dict[str, list[str]]] = {
    "weather": {
        "en": ["Will it rain tomorrow?", "How cold does it get tonight?", "Is a storm coming this weekend?"],
        "de": ["Wird es morgen regnen?", "Wie kalt wird es heute Nacht?", "Kommt am Wochenende ein Sturm?"],
        "fr": ["Est-ce qu'il va pleuvoir demain ?", "Quel froid fera-t-il cette nuit ?", "Une tempête arrive ce week-end ?"],
        "es": ["¿Va a llover mañana?", "¿Cuánto frío hará esta noche?", "¿Viene una tormenta este fin de semana?"],
    },
    "restaurant": {
        "en": ["Book a table for four at eight.", "Is there a good pizzeria nearby?", "I would like to see the menu."],
        "de": [
            "Reserviere einen Tisch für vier um acht.",
            "Gibt es eine gute Pizzeria in der Nähe?",
            "Ich möchte die Speisekarte sehen.",
        ],
        "fr": [
            "Réserve une table pour quatre à huit heures.",
            "Y a-t-il une bonne pizzeria près d'ici ?",
            "Je voudrais voir le menu.",
        ],
        "es": ["Reserva una mesa para cuatro a las ocho.", "¿Hay una buena pizzería cerca?", "Quisiera ver la carta."],
    },
    "train": {
        "en": ["When does the next train to the coast leave?", "My train is an hour late.", "Which platform does it go from?"],
        "de": [
            "Wann fährt der nächste Zug ans Meer?",
            "Mein Zug hat eine Stunde Verspätung.",
            "Von welchem Gleis fährt er ab?",
        ],
        "fr": ["Quand part le prochain train pour la côte ?", "Mon train a une heure de retard.", "De quel quai part-il ?"],
        "es": ["¿Cuándo sale el próximo tren a la costa?", "Mi tren lleva una hora de retraso.", "¿De qué andén sale?"],
    },
    "bank": {
        "en": ["My card was declined at the shop.", "Transfer two hundred to my sister.", "Why is there a fee on my account?"],
        "de": [
            "Meine Karte wurde im Laden abgelehnt.",
            "Überweise zweihundert an meine Schwester.",
            "Warum ist eine Gebühr auf meinem Konto?",
        ],
        "fr": [
            "Ma carte a été refusée au magasin.",
            "Vire deux cents à ma sœur.",
            "Pourquoi y a-t-il des frais sur mon compte ?",
        ],
        "es": [
            "Rechazaron mi tarjeta en la tienda.",
            "Transfiere doscientos a mi hermana.",
            "¿Por qué hay una comisión en mi cuenta?",
        ],
    },
    "doctor": {
        "en": [
            "I have had a fever for three days.",
            "I need an appointment with the dentist.",
            "Can I get my prescription renewed?",
        ],
        "de": [
            "Ich habe seit drei Tagen Fieber.",
            "Ich brauche einen Termin beim Zahnarzt.",
            "Kann mein Rezept verlängert werden?",
        ],
        "fr": [
            "J'ai de la fièvre depuis trois jours.",
            "Il me faut un rendez-vous chez le dentiste.",
            "Peut-on renouveler mon ordonnance ?",
        ],
        "es": ["Tengo fiebre desde hace tres días.", "Necesito una cita con el dentista.", "¿Me pueden renovar la receta?"],
    },
    "music": {
        "en": ["Play some jazz.", "Who sings this song?", "Turn the volume of the music down."],
        "de": ["Spiel etwas Jazz.", "Wer singt dieses Lied?", "Mach die Musik leiser."],
        "fr": ["Mets un peu de jazz.", "Qui chante cette chanson ?", "Baisse le volume de la musique."],
        "es": ["Pon algo de jazz.", "¿Quién canta esta canción?", "Baja el volumen de la música."],
    },
    "football": {
        "en": ["Who won the match last night?", "When is the next game of the national team?", "Was it really a penalty?"],
        "de": [
            "Wer hat gestern Abend das Spiel gewonnen?",
            "Wann spielt die Nationalmannschaft wieder?",
            "War es wirklich ein Elfmeter?",
        ],
        "fr": ["Qui a gagné le match hier soir ?", "Quand joue l'équipe nationale ?", "Était-ce vraiment un penalty ?"],
        "es": ["¿Quién ganó el partido anoche?", "¿Cuándo juega la selección nacional?", "¿De verdad fue penalti?"],
    },
    "school": {
        "en": ["What homework is there for Monday?", "My son was ill and missed the lesson.", "When are the exams?"],
        "de": [
            "Welche Hausaufgaben gibt es für Montag?",
            "Mein Sohn war krank und hat den Unterricht verpasst.",
            "Wann sind die Prüfungen?",
        ],
        "fr": [
            "Quels devoirs y a-t-il pour lundi ?",
            "Mon fils était malade et a manqué le cours.",
            "Quand sont les examens ?",
        ],
        "es": ["¿Qué deberes hay para el lunes?", "Mi hijo estaba enfermo y perdió la clase.", "¿Cuándo son los exámenes?"],
    },
}


def in_language(language: str) -> tuple[list[str], list[str]]:
    """The texts in one language, and their classes."""
    pairs = [(text, label) for label, texts in TEXTS.items() for text in texts[language]]
    return [text for text, _ in pairs], [label for _, label in pairs]
